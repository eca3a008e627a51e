/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The walk as a whole, looked at or not. Everybody takes the same stages: packets nobody
 * looks at, packets of `fpmctl trace`, and the ones of `fpmctl explain`, which do not exist.
 */
#ifndef FWD_WATCH_H
#define FWD_WATCH_H

#include <rte_ethdev.h>

#include "fwd/burst.h"

/*
 * The walk, from arrival to rewrite. `after` (NULL: nothing) is called after each stage; the
 * compiler sees which it is.
 */
static inline __attribute__((always_inline)) void
fwd_walk(struct burst *b, void (*after)(struct burst *b, enum watch_stage stage))
{
	if (!fwd_admit(b)) {
		if (after != NULL)
			after(b, STAGE_ADMIT);
		return;
	}
	fwd_parse(b);
	if (after != NULL)
		after(b, STAGE_PARSE);
	fwd_lookup(b);
	if (after != NULL)
		after(b, STAGE_LOOKUP);
	fwd_adjacency(b);
	if (after != NULL)
		after(b, STAGE_ADJACENCY);
	fwd_rewrite(b);
	if (after != NULL)
		after(b, STAGE_REWRITE);
}

/*
 * The walk of plain packets without the others, which have another one by the rules: they keep
 * nothing of this one, but have lost b->tag_bytes.
 */
static inline __attribute__((always_inline)) void
fwd_walk_plain(struct burst *b, void (*after)(struct burst *b, enum watch_stage stage))
{
	fwd_parse_plain(b);
	if (after != NULL)
		after(b, STAGE_PARSE);
	fwd_lookup_plain(b);
	if (after != NULL)
		after(b, STAGE_LOOKUP);
	fwd_adjacency_plain(b);
	if (after != NULL)
		after(b, STAGE_ADJACENCY);
	fwd_rewrite_plain(b);
	if (after != NULL)
		after(b, STAGE_REWRITE);
}

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
