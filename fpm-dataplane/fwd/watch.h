/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watch: the stages and the transmit call while a session watches packets. walk.h has the
 * sequence of the stages.
 *
 * Private to fwd/.                                                              [fwd-n]
 */
#ifndef FWD_WATCH_H
#define FWD_WATCH_H

#include <rte_ethdev.h>

#include "fwd/burst.h"

/* Parts of fwd_walk_noted() for fwd/sample.c: the path, the rule, the verdict. */
void fwd_note_path(const struct burst *b, unsigned int i, struct watch_record *rec);
void fwd_note_rule(const struct burst *b, unsigned int i, struct watch_record *rec);
void fwd_note_verdict(struct burst *b, unsigned int i, struct watch_record *rec);

/*
 * Pass a burst through the stages and fill the records in b->rec: the stage that decided,
 * the result of the lookup, and the verdict.
 */
void fwd_walk_noted(struct burst *b);

/*
 * Pass a burst through the stages and copy the packets that sessions want to this
 * forwarder's ring.
 */
void fwd_walk_watched(struct burst *b);

/* Give a buffer to its port. Returns the number of frames that the port took. */
static inline uint16_t
fwd_send(struct fwd *f, struct tx_buffer *tx)
{
	return rte_eth_tx_burst(tx->port_id, (uint16_t)f->conf->index, tx->m, tx->n);
}

uint16_t fwd_send_watched(struct fwd *f, uint16_t ifidx, struct tx_buffer *tx);

#endif
