/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * walk: the sequence of the stages. All packets take the same stages: ordinary packets,
 * packets that `fpmctl trace` watches, and the packet of `fpmctl explain`, which was not
 * received.
 */
#ifndef FWD_WALK_H
#define FWD_WALK_H

#include "fwd/filter.h"
#include "fwd/hook.h"

/*
 * Pass a burst through the stages, from admit to rewrite. `after` (may be NULL) is called
 * after each stage. It is constant where this function is inlined, so the compiler makes no
 * indirect calls.
 */
static inline __attribute__((always_inline)) void
fwd_walk(struct burst *b, void (*after)(struct burst *b, enum watch_stage stage))
{
	b->fwd->hook_moved = 0; /* even if no program runs: fwd_dispatch() reads it */
	if (!fwd_admit(b)) {
		if (after != NULL)
			after(b, STAGE_ADMIT);
		return;
	}
	fwd_parse(b);
	if (after != NULL)
		after(b, STAGE_PARSE);
	if (b->fwd->hooks != NULL) {
		fwd_hook(b);
		if (after != NULL)
			after(b, STAGE_HOOK);
	}
	fwd_lookup(b);
	if (b->fwd->hooks != NULL)
		fwd_hook_paths(b);
	if (after != NULL)
		after(b, STAGE_LOOKUP);
	fwd_adjacency(b);
	if (b->fwd->hook_moved != 0)
		fwd_hook_keep(b);
	if (after != NULL)
		after(b, STAGE_ADJACENCY);
	if (iface_checks_sources(b->in)) {
		fwd_urpf(b);
		if (after != NULL)
			after(b, STAGE_URPF);
	}
	if (fwd_filters(b->fwd)) {
		fwd_filter(b);
		if (after != NULL)
			after(b, STAGE_FILTER);
	}
	fwd_rewrite(b);
	if (b->fwd->hook_moved != 0)
		fwd_hook_keep(b);
	if (after != NULL)
		after(b, STAGE_REWRITE);
}

/*
 * Pass the fast-path packets of a burst through the stages. The other packets keep no
 * results, but have lost their tags (b->tag_bytes octets); the slow path handles them in a
 * second pass.
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
