/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The walk as a whole, looked at or not. Everybody takes the same stages: packets nobody
 * looks at, packets of `fpmctl trace`, and the ones of `fpmctl explain`, which do not exist.
 */
#ifndef FWD_WALK_H
#define FWD_WALK_H

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
fwd_walk_fast(struct burst *b, void (*after)(struct burst *b, enum watch_stage stage))
{
	fwd_parse_fast(b);
	if (after != NULL)
		after(b, STAGE_PARSE);
	fwd_lookup_fast(b);
	if (after != NULL)
		after(b, STAGE_LOOKUP);
	fwd_adjacency_fast(b);
	if (after != NULL)
		after(b, STAGE_ADJACENCY);
	fwd_rewrite_fast(b);
	if (after != NULL)
		after(b, STAGE_REWRITE);
}

#endif
