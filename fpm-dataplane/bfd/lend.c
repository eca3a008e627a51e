/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lend: lend the real-time priority of this thread to a forwarder that gets no CPU time. A
 * forwarder has no such priority of its own, because under load it would leave no CPU time
 * to FRR. But without this priority, programs of another control group can hold the
 * forwarder's CPU for more than 20 ms, even programs with a small share of the CPU. Then
 * the peers of sessions of 3 x 10 ms miss three packets.
 *
 * Thread bfd looks at the forwarders four times in the shortest interval between packets. A
 * forwarder that had no round since the last look sleeps or waits for the CPU. It gets the
 * priority, ends its round, and gives the priority back (fwd/bfd.h).                 [bfd]
 */
#include "base/sched.h"
#include "bfd/impl.h"

#define LOOKS         4u       /* looks in the shortest interval between packets */
#define LOOK_LEAST_NS 1000000u /* shortest time between two looks */

static uint64_t
look_gap_ns(const struct bfd *b)
{
	uint64_t gap = b->shortest_us * 1000ull / LOOKS;

	return gap < LOOK_LEAST_NS ? LOOK_LEAST_NS : gap;
}

void
lend_faster(struct bfd *b, uint32_t interval_us)
{
	uint64_t at;

	if (!b->may_lend || interval_us == 0 ||
	    (b->shortest_us != 0 && b->shortest_us <= interval_us))
		return;
	b->shortest_us = interval_us;
	at = monotonic_ns() + look_gap_ns(b);
	if (at < b->lend_at)
		b->lend_at = at;
}

void
lend_pace(struct bfd *b)
{
	const struct bfd_table *t = b->setup.table;
	uint32_t end = atomic_load_explicit(&t->end, memory_order_relaxed);

	b->shortest_us = 0;
	for (uint32_t i = 1; i < end; i++) {
		const struct bfd_beat *beat = bfd_beat(&t->slot[i]);

		if (beat != NULL)
			lend_faster(b, beat->most_us);
	}
	if (b->shortest_us == 0)
		b->lend_at = DUE_NEVER;
}

/* Lend the priority to a forwarder if it had no round since the last look. */
static void
lend_to(struct bfd *b, unsigned int i)
{
	struct bfd_loan *loan = &b->setup.table->loan[i];
	uint32_t rounds = atomic_load_explicit(&loan->rounds, memory_order_relaxed);
	int tid = atomic_load_explicit(&loan->tid, memory_order_relaxed);

	if (rounds == b->lend_rounds[i] && tid != 0 && sched_lend(tid) == 0) {
		/*
		 * Set `lent` after sched_lend(), because the forwarder cannot give back a
		 * priority that it does not have yet.
		 */
		atomic_store_explicit(&loan->lent, true, memory_order_relaxed);
		STATUS_ADD(lends, 1);
	}
	b->lend_rounds[i] = rounds;
}

void
lend_look(struct bfd *b)
{
	uint64_t now = monotonic_ns();

	if (b->lend_at > now)
		return;
	for (unsigned int i = 0; i < b->setup.n_fwd; i++)
		lend_to(b, i);
	b->lend_at = now + look_gap_ns(b);
}
