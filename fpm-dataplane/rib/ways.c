/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ways of slots: computed from their legs, and stored. [rib]. No other file stores to
 * fib->ways. A leg counts whether or not it is alive: Linux checks only that the route
 * names the interface.
 */
#include "rib/ways.h"

#include <stdlib.h>

#include "fib/urpf.h"
#include "rib/index.h"
#include "rib/reclaim.h"
#include "rib/rib_impl.h"
#include "rib/slot.h"

/* Return the way of a leg (fib/urpf.h); 0: the leg has no egress interface. */
static uint16_t
leg_way(const struct leg *leg)
{
	const struct link *link = leg->link;

	if (leg->hop.kind != PATH_NONE)
		return leg->hop.kind == PATH_UNRESOLVED ? FIB_WAY_OTHER : 0;
	if (link == NULL)
		return FIB_WAY_OTHER;
	if (link->vrf != 0)
		return (uint16_t)(FIB_WAY_VRF | link->vrf);
	return link->ifidx != 0 ? link->ifidx : FIB_WAY_OTHER;
}

/*
 * Store the ways of a slot in rib->words.ways, each once, in the order of the legs. Return
 * their number.
 */
static uint32_t
ways_collect(struct rib *rib, const struct slot *s)
{
	struct vec32 *ways = &rib->words.ways;

	ways->n = 0;
	for (uint32_t i = 0; i < s->n_legs; i++) {
		uint16_t way = leg_way(&s->leg[i]);
		uint32_t at = 0;

		while (at < ways->n && ways->v[at] != way)
			at++;
		if (way != 0 && at == ways->n)
			vec32_push(ways, way);
	}
	return ways->n;
}

/* Return true if a published word has the ways of rib->words.ways. */
static bool
word_has_ways(const struct rib *rib, uint64_t word)
{
	const struct vec32 *ways = &rib->words.ways;
	const struct fib_ways *block =
		(word & FIB_WAYS_BLOCK) != 0 ? fib_ways_block(word) : NULL;
	uint32_t n = block != NULL ? block->n : FIB_WAYS_WORD;

	if (block != NULL ? n != ways->n : ways->n > n)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t way = block != NULL ? block->way[i] : (word >> i * 16 & 0xffff);

		if (way != (i < ways->n ? ways->v[i] : 0))
			return false;
	}
	return true;
}

static uint64_t
slot_ways(const struct rib *rib, const struct slot *s)
{
	return atomic_load_explicit(&rib->fib->ways[s->number], memory_order_relaxed);
}

bool
ways_are_current(struct rib *rib, const struct slot *s)
{
	ways_collect(rib, s);
	return word_has_ways(rib, slot_ways(rib, s));
}

void
ways_drop(struct rib *rib, struct slot *s)
{
	if (s->ways != NULL)
		reclaim_block(rib, s->ways);
	s->ways = NULL;
}

void
ways_publish(struct rib *rib, struct slot *s)
{
	uint32_t n = ways_collect(rib, s);
	struct fib_ways *block = NULL;
	uint64_t word = 0;

	if (word_has_ways(rib, slot_ways(rib, s)))
		return;
	if (n > FIB_WAYS_WORD) {
		block = mem_or_abort(malloc(sizeof(*block) + n * sizeof(block->way[0])));
		block->n = n;
		word = FIB_WAYS_BLOCK | (uint64_t)(uintptr_t)block;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (block != NULL)
			block->way[i] = (uint16_t)rib->words.ways.v[i];
		else
			word |= (uint64_t)rib->words.ways.v[i] << i * 16;
	}
	/* Release: a reader of the word also sees the block. */
	atomic_store_explicit(&rib->fib->ways[s->number], word, memory_order_release);
	ways_drop(rib, s);
	s->ways = block;
}

void
ways_clear(struct rib *rib, uint32_t slot)
{
	atomic_store_explicit(&rib->fib->ways[slot], 0, memory_order_relaxed);
}
