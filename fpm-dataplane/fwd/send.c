/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * send: give a transmit buffer to its port while a session watches packets. Frames that a
 * filter wants are copied to this forwarder's ring. A full ring loses the record, never the
 * packet.                                                                       [fwd-n]
 */
#include "fwd/send.h"

#include "fwd/tx.h"
#include "port/vlan_tags.h"

uint16_t
fwd_send_watched(struct fwd *f, uint16_t ifidx, struct tx_buffer *tx)
{
	struct watch_ring *ring = f->conf->watch_ring;
	struct watch_record *rec[TX_BURST_MAX];
	uint64_t now_ns = 0;
	uint16_t sent;

	/*
	 * Make the records before the transmit call, because a sent frame is no longer
	 * ours. The record has the frame with its tag.
	 */
	for (unsigned int i = 0; i < tx->n; i++) {
		if ((tx->m[i]->ol_flags & RTE_MBUF_F_TX_VLAN) != 0)
			vlan_insert(tx->m[i]);
		rec[i] = watch_note(ring, f->watch, WATCH_SENT, tx_ifidx(tx->m[i], ifidx),
				    tx->m[i], &now_ns);
		if (rec[i] != NULL) {
			rec[i]->out_ifidx = tx_ifidx(tx->m[i], ifidx);
			rec[i]->verdict = VERDICT_GO;
		}
	}
	sent = fwd_send(f, tx);
	for (unsigned int i = sent; i < tx->n; i++)
		if (rec[i] != NULL)
			rec[i]->sessions = 0; /* not sent: skip the record */
	for (unsigned int i = tx_keep_end(f, tx, sent); i < tx->n; i++)
		watch_lost(ring, f->watch, tx_ifidx(tx->m[i], ifidx), tx->m[i],
			   DROP_tx_full);
	watch_publish(ring);
	return sent;
}
