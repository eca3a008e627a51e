/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tx: the transmit buffers, one per port. They are filled packet by packet (tx.h) or with
 * vectors (spread_avx512.c), and sent when they are full or the round ends. A sent frame
 * counts for its port and its VLAN. A frame in transit that the port does not take is
 * dropped; a frame of this router is kept for the next round.
 *                                                                               [fwd-n]
 */
#include "fwd/tx.h"

#include "fwd/cycles.h"
#include "fwd/sample.h"
#include "fwd/send.h"
#include "port/vlan_tags.h"

/*
 * The VLANs and lengths of a buffer's frames. They are noted before the transmit call,
 * because a sent frame is no longer ours.
 */
struct vlan_frames {
	/* bits of m->port that differ; 0: all leave by the interface in frame[0] */
	uint32_t differ;
	uint32_t frame[TX_BURST_MAX]; /* octets * IFIDX_MAX + ifidx */
};
static_assert((UINT16_MAX + L2_LEN + VLAN_TAGS * VLAN_BYTES) <= UINT32_MAX / IFIDX_MAX,
	      "the longest frame fits");

/* Note the frames of a buffer. Returns the sum of their lengths. */
static uint64_t
vlan_frames_note(const struct tx_buffer *tx, uint16_t port, struct vlan_frames *v)
{
	uint16_t first = tx->m[0]->port, differ = 0;
	uint64_t bytes = 0;

	for (uint16_t i = 0; i < tx->n; i++) {
		differ |= tx->m[i]->port ^ first;
		bytes += rte_pktmbuf_pkt_len(tx->m[i]);
	}
	for (uint16_t i = 0; tx->has_inserts && i < tx->n; i++)
		bytes += vlan_sent_bytes(tx->m[i]) - rte_pktmbuf_pkt_len(tx->m[i]);
	v->differ = differ;
	v->frame[0] = tx_ifidx(tx->m[0], port);
	for (uint16_t i = 0; differ != 0 && i < tx->n; i++)
		v->frame[i] =
			vlan_sent_bytes(tx->m[i]) * IFIDX_MAX + tx_ifidx(tx->m[i], port);
	return bytes;
}

/* Count frames of a VLAN. The caller counts them for the port. */
static inline void
vlan_count_tx(struct fwd *f, uint16_t ifidx, uint64_t n, uint64_t bytes)
{
	struct if_counters *c = &f->count->port[ifidx];

	if (ifidx < PORT_MAX)
		return;
	counter_add(&c->tx_packets, n);
	counter_add(&c->tx_bytes, bytes);
}

/* Count the first `n` frames, `bytes` octets, as sent. */
static void
vlan_frames_count(struct fwd *f, const struct vlan_frames *v, uint16_t n, uint64_t bytes)
{
	if (v->differ == 0)
		vlan_count_tx(f, v->frame[0] % IFIDX_MAX, n, bytes);
	for (uint16_t i = 0; v->differ != 0 && i < n; i++)
		vlan_count_tx(f, v->frame[i] % IFIDX_MAX, 1, v->frame[i] / IFIDX_MAX);
}

/* Name the VLAN in each frame of the buffer, because frames of other interfaces follow. */
void
fwd_tx_mark_vlans(struct tx_buffer *tx)
{
	for (uint16_t i = 0; i < tx->n; i++)
		tx->m[i]->port = tx->vlan;
	tx->has_vlans |= tx->n > 0;
	tx->vlan = 0;
}

/* Keep or drop the frames of a buffer that the port did not take. */
static __attribute__((noinline)) void
tx_unsent(struct fwd *f, uint16_t ifidx, uint16_t sent)
{
	struct tx_buffer *tx = &f->tx[ifidx];
	uint16_t end = tx_keep_end(f, tx, sent), kept = end - sent;

	for (uint16_t i = end; fwd_samples_drops(f) && i < tx->n; i++)
		fwd_sample_unsent(f, ifidx,
				  tx->vlan != 0 ? tx->vlan : tx_ifidx(tx->m[i], ifidx),
				  tx->m[i]);
	rte_pktmbuf_free_bulk(tx->m + end, tx->n - end);
	counter_add(&f->count->reason[DROP_tx_full], tx->n - end);
	memmove(tx->m, tx->m + sent, kept * sizeof(tx->m[0]));
	if (kept == 0)
		tx->kept_tsc = 0;
	else if (sent > 0 || tx->kept_tsc == 0)
		tx->kept_tsc = rte_rdtsc();
	tx->n = tx->n_own = kept;
	tx->vlan = 0; /* m->port names the VLAN of a frame of this router */
	tx->has_vlans = tx->has_vlans && kept > 0;
	tx->has_inserts = tx->has_inserts && kept > 0;
}

void
fwd_tx_send(struct fwd *f, uint16_t ifidx)
{
	struct tx_buffer *tx = &f->tx[ifidx];
	struct if_counters *c = &f->count->port[ifidx];
	struct vlan_frames vlans;
	uint64_t begin_tsc, bytes = 0;
	bool has_vlans;
	uint16_t sent;

	if (tx->vlan != 0 && fwd_watched(f))
		fwd_tx_mark_vlans(tx);
	has_vlans = tx->has_vlans;
	/*
	 * `differ` is read only if has_vlans is true. gcc 14 does not see that and warns.
	 */
	vlans.differ = 0;
	if (has_vlans)
		bytes = vlan_frames_note(tx, ifidx, &vlans);
	else
#pragma GCC unroll 4
		for (unsigned int i = 0, n = tx->n; i < n; i++)
			bytes += rte_pktmbuf_pkt_len(tx->m[i]);
	begin_tsc = cycles_send(f);
	if (fwd_watched(f))
		sent = fwd_send_watched(f, ifidx, tx);
	else
		sent = fwd_send(f, tx);
	cycles_sent(f, begin_tsc);
	/* Only the frames that were not sent may still be read. */
	for (uint16_t i = sent; i < tx->n; i++)
		bytes -= vlan_sent_bytes(tx->m[i]);
	counter_add(&c->tx_packets, sent);
	counter_add(&c->tx_bytes, bytes);
	if (has_vlans)
		vlan_frames_count(f, &vlans, sent, bytes);
	else if (tx->vlan != 0)
		vlan_count_tx(f, tx->vlan, sent, bytes);
	if (sent < tx->n) {
		tx_unsent(f, ifidx, sent);
		return;
	}
	tx->n = tx->n_own = 0;
	tx->kept_tsc = 0;
	tx->vlan = 0;
	tx->has_vlans = tx->has_inserts = false;
}

bool
fwd_tx_vlan(struct fwd *f, uint16_t port, uint16_t vlan)
{
	struct tx_buffer *tx = &f->tx[port];

	if (tx->vlan == vlan)
		return true;
	if (tx->n == 0) {
		tx->vlan = vlan;
		return true;
	}
	if (tx->vlan != 0)
		fwd_tx_mark_vlans(tx);
	tx->has_vlans |= vlan != 0;
	return vlan == 0;
}

struct rte_mbuf **
fwd_tx_room(struct fwd *f, uint16_t ifidx, unsigned int n)
{
	struct tx_buffer *tx = &f->tx[ifidx];
	unsigned int at = tx->n;

	if (at + n > f->tx_burst)
		return NULL;
	if (at == 0)
		tx_list(f, ifidx);
	tx->n = (uint16_t)(at + n);
	return tx->m + at;
}

void
fwd_tx_full(struct fwd *f, uint16_t ifidx)
{
	if (f->tx[ifidx].n == f->tx_burst)
		fwd_tx_send(f, ifidx);
}

void
fwd_tx(struct fwd *f, uint16_t ifidx, struct rte_mbuf *m)
{
	fwd_tx_put(f, ifidx, m);
}

void
fwd_tx_flush(struct fwd *f)
{
	uint16_t n = f->n_tx_used, kept = 0;

	for (uint16_t i = 0; i < n; i++) {
		struct tx_buffer *tx = &f->tx[f->tx_used[i]];

		if (tx->n > 0)
			fwd_tx_send(f, f->tx_used[i]);
		tx->listed = tx->n > 0;
		if (tx->listed)
			f->tx_used[kept++] = f->tx_used[i];
	}
	f->n_tx_used = kept;
}

/* Drop the frames of a buffer for a reason. */
static void
tx_drop(struct fwd *f, struct tx_buffer *tx, enum reason reason)
{
	rte_pktmbuf_free_bulk(tx->m, tx->n);
	counter_add(&f->count->reason[reason], tx->n);
	*tx = (struct tx_buffer){0};
}

/*
 * Drop the kept frames whose time is over, and the kept frames of a port without a TAP,
 * because it is being removed. So after this round no frame waits for such a port.
 */
static __attribute__((noinline)) void
kept_look(struct fwd *f)
{
	uint64_t now = rte_rdtsc(), most = rte_get_tsc_hz() / 1000 * TX_KEEP_MS;
	uint16_t n = f->n_tx_used, kept = 0;

	for (uint16_t i = 0; i < n; i++) {
		struct tx_buffer *tx = &f->tx[f->tx_used[i]];
		const struct fib_iface *iface = fib_iface(f->fib, f->tx_used[i]);

		if (iface == NULL || iface->ifindex == 0) {
			tx_drop(f, tx, DROP_egress_down);
			continue;
		}
		if (now - tx->kept_tsc > most) {
			tx_drop(f, tx, DROP_tx_full);
			continue;
		}
		tx->port_id = iface->port_id;
		f->tx_used[kept++] = f->tx_used[i];
	}
	f->n_tx_used = kept;
}

void
fwd_tx_own(struct fwd *f)
{
	f->tx_own = true;
	if (f->n_tx_used > 0)
		kept_look(f);
}

void
fwd_tx_own_end(struct fwd *f)
{
	f->tx_own = false;
	for (uint16_t i = 0; i < f->n_tx_used; i++)
		f->tx[f->tx_used[i]].n_own = f->tx[f->tx_used[i]].n;
}

void
fwd_tx_drop(struct fwd *f)
{
	for (uint16_t i = 0; i < f->n_tx_used; i++)
		tx_drop(f, &f->tx[f->tx_used[i]], DROP_tx_full);
	f->n_tx_used = 0;
}
