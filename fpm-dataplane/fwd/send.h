/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * send: give a transmit buffer to its port.
 *
 * Private to fwd/.                                                              [fwd-n]
 */
#ifndef FWD_SEND_H
#define FWD_SEND_H

#include <rte_ethdev.h>

#include "fwd/burst.h"

/*
 * Return the index behind the last frame that is kept, if the port has taken `sent` frames.
 * The kept frames begin at index `sent`.
 */
static inline uint16_t
tx_keep_end(const struct fwd *f, const struct tx_buffer *tx, uint16_t sent)
{
	uint16_t own = f->tx_own ? tx->n : tx->n_own, room = f->tx_burst / 2;

	if (sent >= own)
		return sent;
	return own - sent > room ? (uint16_t)(sent + room) : own;
}

/* Give a buffer to its port. Returns the number of frames that the port took. */
static inline uint16_t
fwd_send(struct fwd *f, struct tx_buffer *tx)
{
	return rte_eth_tx_burst(tx->port_id, (uint16_t)f->conf->index, tx->m, tx->n);
}

/* fwd_send() while a session watches: copy the frames that filters want to the ring. */
uint16_t fwd_send_watched(struct fwd *f, uint16_t ifidx, struct tx_buffer *tx);

#endif
