/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a forwarder's time goes: one round with packets of many is timed, stage by stage, for `fpmctl
 * show cycles`. A round that is not costs a comparison.                           [fwd-n]
 */
#ifndef FWD_CYCLES_H
#define FWD_CYCLES_H

#include <rte_cycles.h>

#include "fwd/burst.h"

/* A prime: no period of the loop's own, such as that of its flushes, may fall in with it. */
#define CYCLES_EVERY 251

/* What has passed since the last mark was stage `c`. */
static inline void
cycles_mark(struct fwd *f, enum cycles c)
{
	uint64_t now = rte_rdtsc();

	counter_add(&f->count->cycles[c], now - f->mark_tsc);
	f->mark_tsc = now;
}

/* A sending begins; cycles_sent() has its time, and the stage around it has not. */
static inline uint64_t
cycles_send(const struct fwd *f)
{
	return f->timed ? rte_rdtsc() : 0;
}

static inline void
cycles_sent(struct fwd *f, uint64_t begin_tsc)
{
	uint64_t took;

	if (!f->timed)
		return;
	took = rte_rdtsc() - begin_tsc;
	counter_add(&f->count->cycles[CYCLES_SEND], took);
	f->mark_tsc += took;
}

#endif
