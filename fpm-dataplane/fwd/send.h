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

/* Give a buffer to its port. Returns the number of frames that the port took. */
static inline uint16_t
fwd_send(struct fwd *f, struct tx_buffer *tx)
{
	return rte_eth_tx_burst(tx->port_id, (uint16_t)f->conf->index, tx->m, tx->n);
}

/* fwd_send() while a session watches: copy the frames that filters want to the ring. */
uint16_t fwd_send_watched(struct fwd *f, uint16_t ifidx, struct tx_buffer *tx);

#endif
