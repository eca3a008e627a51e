/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cycles: measure the time of each stage in one of CYCLES_EVERY rounds with packets, for
 * `fpmctl show cycles`. A round that is not timed pays one comparison.          [fwd-n]
 */
#ifndef FWD_CYCLES_H
#define FWD_CYCLES_H

#include <rte_cycles.h>

#include "fwd/burst.h"

/*
 * A prime. With another number, all timed rounds could be rounds with a periodic event such
 * as a flush, or none of them.
 */
#define CYCLES_EVERY 251

/* Add the time since the last mark to stage `c`. */
static inline void
cycles_mark(struct fwd *f, enum cycles c)
{
	uint64_t now = rte_rdtsc();

	counter_add(&f->count->cycles[c], now - f->mark_tsc);
	f->mark_tsc = now;
}

/*
 * Begin to time a transmit call. cycles_sent() adds its time to CYCLES_SEND and subtracts
 * it from the stage that made the call.
 */
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
