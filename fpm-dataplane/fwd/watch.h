/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watch: the walk and the sending while somebody looks; the walk itself is in walk.h.
 *
 * Private to fwd/.                                                                 [fwd-n]
 */
#ifndef FWD_WATCH_H
#define FWD_WATCH_H

#include <rte_ethdev.h>

#include "fwd/burst.h"

/*
 * The walk of a burst of which some packets have a record in b->rec: sets down the stage at
 * which each was decided, what was found, and the verdict.
 */
void fwd_walk_noted(struct burst *b);

/* The walk while somebody looks: what they look for is copied to this forwarder's ring. */
void fwd_walk_watched(struct burst *b);

/* Give a buffer to its port. Returns how many it took. */
static inline uint16_t
fwd_send(struct fwd *f, struct tx_buffer *tx)
{
	return rte_eth_tx_burst(tx->port_id, (uint16_t)f->conf->index, tx->m, tx->n);
}

uint16_t fwd_send_watched(struct fwd *f, uint16_t ifidx, struct tx_buffer *tx);

#endif
