/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Group words: the next hops of a slot in the form that forwarders read, computed and
 * stored. [rib]. No other file stores to fib->group, except for the test hook
 * audit_break().
 *
 * Dirty slots wait for the commit. Changes of links and neighbors do not, so that a dead
 * member is left out at once (words_publish()).
 */
#include "rib/words.h"

#include <stdlib.h>
#include <string.h>

#include "rib/content.h"
#include "rib/group.h"
#include "rib/index.h"
#include "rib/leg.h"
#include "rib/nexthop.h"
#include "rib/reclaim.h"
#include "rib/rib_impl.h"
#include "rib/slot.h"

/*
 * Choose the paths of a slot: all of the best class among its legs, with the weights of
 * equal paths added up. Return their number, at least one.
 */
static uint32_t
word_choose_paths(struct rib *rib, const struct slot *s)
{
	enum leg_class best = LEG_UNRESOLVED + 1, class;
	struct bucket_member *m;
	uint32_t n = 0, at;
	fib_path path;

	if (rib->words.cap_members < s->n_legs) {
		rib->words.cap_members = s->n_legs + 16;
		rib->words.members = mem_or_abort(
			realloc(rib->words.members, rib->words.cap_members * sizeof(*m)));
	}
	m = rib->words.members;
	for (uint32_t i = 0; i < s->n_legs; i++) {
		class = leg_path(rib, &s->leg[i], &path);
		if (class < best) {
			best = class;
			m[0] = (struct bucket_member){.path = path};
		}
	}
	if (best > LEG_FAILED)
		return 1; /* several paths of these classes have the same effect */
	for (uint32_t i = 0; i < s->n_legs; i++) {
		if (leg_path(rib, &s->leg[i], &path) != best)
			continue;
		/* Legs are sorted, so equal paths are at most a few places apart. */
		for (at = n; at > 0 && n - at < 8 && m[at - 1].path != path;)
			at--;
		if (at == 0 || m[at - 1].path != path) {
			m[n++] = (struct bucket_member){.path = path};
			at = n;
		}
		m[at - 1].weight += s->leg[i].hop.weight;
	}
	return n;
}

void
word_drop_block(struct rib *rib, struct slot *s)
{
	reclaim_block(rib, s->block);
	rib->words.block_bytes -= sizeof(*s->block) << s->log2_block;
	s->block = NULL;
}

/* Return the buckets of a word that rib may free. */
static fib_path *
word_own_buckets(uint64_t word)
{
	return (fib_path *)(uintptr_t)group_word_buckets(word);
}

/*
 * Return the group word of a slot for its present next hops. It is the published one if
 * nothing has changed, or else a word with new buckets if there are several paths.
 */
static uint64_t
word_compute(struct rib *rib, const struct slot *s)
{
	uint64_t old =
		atomic_load_explicit(&rib->fib->group[s->number], memory_order_relaxed);
	fib_path single = (fib_path)old, *block;
	const fib_path *keep = &single;
	unsigned int log2_old = 0, log2_n;
	uint32_t n = word_choose_paths(rib, s);

	if (n == 1)
		return group_word_single(rib->words.members[0].path);
	if (group_word_is_block(old)) {
		keep = group_word_buckets(old);
		log2_old = group_word_log2(old);
	}
	log2_n = group_log2(rib->words.members, n, log2_old);
	block = mem_or_abort(aligned_alloc(64, sizeof(*block) << log2_n));
	group_fill(block, log2_n, rib->words.members, n, keep, log2_old);
	if (log2_n == log2_old && memcmp(block, keep, sizeof(*block) << log2_n) == 0) {
		free(block);
		return old;
	}
	return group_word_block(block, log2_n);
}

bool
slot_is_current(struct rib *rib, const struct slot *s)
{
	uint64_t word;

	if (s->kind == SLOT_ID) {
		nh_hops(rib, slot_nh(rib, s), s->mtu_class, &rib->scratch);
		if (!slot_has_hops(s, &rib->scratch))
			return false;
	}
	word = word_compute(rib, s);
	if (word == atomic_load_explicit(&rib->fib->group[s->number], memory_order_relaxed))
		return true;
	if (group_word_is_block(word))
		free(word_own_buckets(word));
	return false;
}

/* Compute the group word of a slot, and store it if it differs. */
static void
word_publish(struct rib *rib, struct slot *s)
{
	uint64_t old =
		atomic_load_explicit(&rib->fib->group[s->number], memory_order_relaxed);
	uint64_t word = word_compute(rib, s);

	if (word == old)
		return;
	/*
	 * Release: a reader of the word also sees the buckets and the keys of the
	 * adjacencies.
	 */
	atomic_store_explicit(&rib->fib->group[s->number], word, memory_order_release);
	rib->count.word_writes++;
	if (s->block != NULL)
		word_drop_block(rib, s);
	if (group_word_is_block(word)) {
		s->block = word_own_buckets(word);
		s->log2_block = (uint8_t)group_word_log2(word);
		rib->words.block_bytes += sizeof(*s->block) << s->log2_block;
	}
}

void
slots_bind(struct rib *rib)
{
	for (uint32_t i = 0; i < rib->slots.dirty.n; i++) {
		struct slot *s = slot_at(&rib->slots, rib->slots.dirty.v[i]);

		if ((s->dirty & SLOT_CONTENT) != 0 && s->kind == SLOT_ID) {
			nh_hops(rib, slot_nh(rib, s), s->mtu_class, &rib->scratch);
			if (!slot_has_hops(s, &rib->scratch))
				slot_set_hops(rib, s, &rib->scratch);
		}
		s->dirty &= (uint8_t)~SLOT_CONTENT;
	}
}

void
words_publish_all(struct rib *rib)
{
	for (uint32_t i = 0; i < rib->slots.dirty.n; i++) {
		struct slot *s = slot_at(&rib->slots, rib->slots.dirty.v[i]);

		if ((s->dirty & SLOT_PATHS) != 0)
			word_publish(rib, s);
		s->dirty = 0;
		s->queued = false;
	}
	rib->slots.dirty.n = 0;
}

/* Return true while neigh has not answered about an adjacency of the slot. */
static bool
slot_is_awaited(const struct rib *rib, const struct slot *s)
{
	for (uint32_t i = 0; i < s->n_legs; i++)
		if (s->leg[i].adj != 0 && rib->adjs.v[s->leg[i].adj].asked)
			return true;
	return false;
}

void
words_publish(struct rib *rib)
{
	uint32_t kept = 0;

	rib->words.due = false;
	for (uint32_t i = 0; i < rib->slots.dirty.n; i++) {
		struct slot *s = slot_at(&rib->slots, rib->slots.dirty.v[i]);

		if ((s->dirty & SLOT_PATHS) != 0 && !slot_is_awaited(rib, s)) {
			word_publish(rib, s);
			s->dirty &= (uint8_t)~SLOT_PATHS;
		}
		s->queued = s->dirty != 0;
		if (s->queued)
			rib->slots.dirty.v[kept++] = s->number;
	}
	rib->slots.dirty.n = kept;
}

void
word_clear(struct rib *rib, uint32_t slot)
{
	atomic_store_explicit(&rib->fib->group[slot],
			      group_word_single(PATH(PATH_UNRESOLVED, 0)),
			      memory_order_relaxed);
}

void
words_free(struct rib *rib)
{
	free(rib->words.members);
}
