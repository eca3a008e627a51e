/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * egress: compute the egress interfaces of slots from their legs, and store them. No other
 * file stores to fib->egress. A leg counts whether or not it is alive, because Linux checks
 * only that the route names the interface.                                          [rib]
 */
#include "rib/egress.h"

#include <stdlib.h>

#include "fib/urpf.h"
#include "rib/index.h"
#include "rib/reclaim.h"
#include "rib/impl.h"
#include "rib/slot.h"

/* Return the egress of a leg (fib/urpf.h); 0: the leg has no egress interface. */
static uint16_t
leg_egress(const struct leg *leg)
{
	const struct link *link = leg->link;

	if (leg->hop.kind != PATH_NONE)
		return leg->hop.kind == PATH_UNRESOLVED ? FIB_EGRESS_OTHER : 0;
	if (link == NULL)
		return FIB_EGRESS_OTHER;
	if (link->vrf != 0)
		return (uint16_t)(FIB_EGRESS_VRF | link->vrf);
	return link->ifidx != 0 ? link->ifidx : FIB_EGRESS_OTHER;
}

/*
 * Store the egress interfaces of a slot in rib->words.egress, each once, in the order of
 * the legs. Return their number.
 */
static uint32_t
egress_collect(struct rib *rib, const struct slot *s)
{
	struct vec32 *egress = &rib->words.egress;

	egress->n = 0;
	for (uint32_t i = 0; i < s->n_legs; i++) {
		uint16_t ifidx = leg_egress(&s->leg[i]);
		uint32_t at = 0;

		while (at < egress->n && egress->v[at] != ifidx)
			at++;
		if (ifidx != 0 && at == egress->n)
			vec32_push(egress, ifidx);
	}
	return egress->n;
}

/* Return true if a published word has the interfaces of rib->words.egress. */
static bool
word_has_egress(const struct rib *rib, uint64_t word)
{
	const struct vec32 *egress = &rib->words.egress;
	const struct fib_egress *block =
		(word & FIB_EGRESS_BLOCK) != 0 ? fib_egress_block(word) : NULL;
	uint32_t n = block != NULL ? block->n : FIB_EGRESS_WORD;

	if (block != NULL ? n != egress->n : egress->n > n)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t ifidx =
			block != NULL ? block->ifidx[i] : (word >> i * 16 & 0xffff);

		if (ifidx != (i < egress->n ? egress->v[i] : 0))
			return false;
	}
	return true;
}

static uint64_t
slot_egress(const struct rib *rib, const struct slot *s)
{
	return atomic_load_explicit(&rib->fib->egress[s->number], memory_order_relaxed);
}

bool
egress_is_current(struct rib *rib, const struct slot *s)
{
	egress_collect(rib, s);
	return word_has_egress(rib, slot_egress(rib, s));
}

void
egress_drop(struct rib *rib, struct slot *s)
{
	if (s->egress != NULL)
		reclaim_block(rib, s->egress);
	s->egress = NULL;
}

void
egress_publish(struct rib *rib, struct slot *s)
{
	uint32_t n = egress_collect(rib, s);
	struct fib_egress *block = NULL;
	uint64_t word = 0;

	if (word_has_egress(rib, slot_egress(rib, s)))
		return;
	if (n > FIB_EGRESS_WORD) {
		block = mem_or_abort(malloc(sizeof(*block) + n * sizeof(block->ifidx[0])));
		block->n = n;
		word = FIB_EGRESS_BLOCK | (uint64_t)(uintptr_t)block;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (block != NULL)
			block->ifidx[i] = (uint16_t)rib->words.egress.v[i];
		else
			word |= (uint64_t)rib->words.egress.v[i] << i * 16;
	}
	/* Release: a reader of the word also sees the block. */
	atomic_store_explicit(&rib->fib->egress[s->number], word, memory_order_release);
	egress_drop(rib, s);
	s->egress = block;
}

void
egress_clear(struct rib *rib, uint32_t slot)
{
	atomic_store_explicit(&rib->fib->egress[slot], 0, memory_order_relaxed);
}
