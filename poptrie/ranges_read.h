/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ranges_read: look up one key in the list of ranges of a small table. A file that includes
 * this header compiles it for a kind of CPU. Before the #include, the file defines
 *
 *     static unsigned int ranges_below(const struct pt_ranges *r, uint32_t addr);
 *
 * which returns how many of the sixteen ranges at `r` end before `addr`. Any reader thread.
 * A reader never waits for the writer; see ranges.c.
 */
#ifndef POPTRIE_RANGES_READ_H
#define POPTRIE_RANGES_READ_H

#include "poptrie/impl.h"

/* Look up one key: compare it with all ends at once. */
PT_INLINE uint32_t
ranges_find_one(const struct poptrie *pt, uint32_t addr)
{
	unsigned int at = 0;

	if (__builtin_expect(pt->n_ranges <= 16, 1))
		return pt->ranges[0].value[ranges_below(&pt->ranges[0], addr) % 16];
	for (unsigned int i = 0; i * 16 < pt->n_ranges && i < PT_RANGES / 16; i++)
		at += ranges_below(&pt->ranges[i], addr);
	at %= PT_RANGES; /* in bounds, even while the writer changes the list */
	return pt->ranges[at / 16].value[at % 16];
}

/*
 * Return true if the writer has not begun to change the list since the caller read `turn`.
 */
PT_INLINE bool
ranges_unchanged(const struct poptrie *pt, uint32_t turn)
{
	atomic_signal_fence(memory_order_acquire);
	return atomic_load_explicit(&pt->ranges_turn, memory_order_relaxed) == turn;
}

/*
 * Look up keys in many tables without a call for each key, so that the loads of tables in
 * near memory, or already prefetched, overlap.
 */
PT_INLINE void
ranges_each4(const struct poptrie *const *pt, const uint32_t *addr, uint32_t *value,
	     unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		uint32_t turn =
			atomic_load_explicit(&pt[i]->ranges_turn, memory_order_acquire);
		const struct pt_view *v;

		if ((turn & 1) == 0) {
			value[i] = ranges_find_one(pt[i], addr[i]);
			if (__builtin_expect(ranges_unchanged(pt[i], turn), 1))
				continue;
		}
		v = pt_view(pt[i]);
		v->bulk4(v, &addr[i], &value[i], 1);
	}
}

#endif
