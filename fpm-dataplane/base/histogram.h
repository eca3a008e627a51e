/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * histogram: durations counted by powers of two. One thread writes, others read relaxed
 * and may miss the latest entry.
 */
#ifndef BASE_HISTOGRAM_H
#define BASE_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

#define HISTOGRAM_BUCKETS 18u /* below 8 us, 16 us, ... 0.5 s; the last bucket: longer */

struct histogram {
	_Atomic uint64_t bucket[HISTOGRAM_BUCKETS]; /* W:owner */
	_Atomic uint64_t sum_us, max_us;            /* W:owner */
};

/*
 * Return the upper bound of bucket `i`, in microseconds. The bucket counts durations from
 * the bound of bucket `i` - 1 up to below this one. The last bucket has no bound.
 */
static inline uint64_t
histogram_below_us(unsigned int i)
{
	return 8ull << i;
}

/* Count a duration of `us` microseconds.                                        [owner] */
static inline void
histogram_add(struct histogram *h, uint64_t us)
{
	unsigned int i = us < 8 ? 0 : 61 - (unsigned int)__builtin_clzll(us);

	if (i >= HISTOGRAM_BUCKETS)
		i = HISTOGRAM_BUCKETS - 1;
	/* One writer: no locked instruction is needed. */
	atomic_store_explicit(&h->bucket[i], h->bucket[i] + 1, memory_order_relaxed);
	atomic_store_explicit(&h->sum_us, h->sum_us + us, memory_order_relaxed);
	if (us > h->max_us)
		atomic_store_explicit(&h->max_us, us, memory_order_relaxed);
}

#endif
