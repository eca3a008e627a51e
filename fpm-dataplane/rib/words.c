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
#include "rib/impl.h"
#include "rib/slot.h"
#include "rib/stack.h"
#include "rib/egress.h"

/*
 * Groups keep a block that is larger than necessary while the blocks of all groups are not
 * larger than this, because a smaller block moves flows.
 */
#define BLOCKS_AMPLE_BYTES (64u << 20)

/*
 * Return a hash of the gateway and the interface of a leg, or for a headend of its
 * segments, because several far ends can be behind one gateway and stay when the gateway
 * changes.
 */
static uint32_t
leg_hash(const struct rib *rib, const struct leg *leg)
{
	uint64_t ifindex = leg->link == NULL ? 0 : leg->link->ifindex;

	if (leg->hop.encap == HOP_SEG6 && leg->encap != 0)
		return stack_hash(stack_at(rib, leg->hop.stack));
	return (uint32_t)ipaddr_hash(&leg->hop.gw,
				     (uint64_t)leg->hop.gw_family << 32 | ifindex);
}

/*
 * Choose the paths of a slot: the paths of all legs of the best class. Add up the weights
 * of equal paths. Return the number of paths, at least one.
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
		return 1; /* all paths of these classes have the same effect */
	for (uint32_t i = 0; i < s->n_legs; i++) {
		if (leg_path(rib, &s->leg[i], &path) != best)
			continue;
		/* Legs are sorted, so equal paths are at most a few places apart. */
		for (at = n; at > 0 && n - at < 8 && m[at - 1].path != path;)
			at--;
		if (at == 0 || m[at - 1].path != path) {
			m[n++] = (struct bucket_member){.path = path,
							.hash = leg_hash(rib, &s->leg[i])};
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
	rib->words.block_bytes -= group_block_bytes(s->log2_block);
	s->block = NULL;
}

/* Return the buckets of a word as memory that rib may free. */
static fib_path *
word_own_buckets(uint64_t word)
{
	return (fib_path *)(uintptr_t)group_word_buckets(word);
}

/*
 * Return the word with the buckets that a new word of the slot keeps: the published word,
 * or before the first one, the word of the slot that the routes had before. A word with one
 * path has no buckets to keep: any assignment then moves only the flows of the other
 * members.
 */
static uint64_t
word_former(const struct rib *rib, const struct slot *s)
{
	return slot_word(rib, s->version != 0 ? s->number : s->former);
}

/* Return true if some of the members are of PATH_KERNEL, and some are not. */
static bool
members_are_mixed(const struct rib *rib, uint32_t n)
{
	uint32_t n_kernel = 0;

	for (uint32_t i = 0; i < n; i++)
		n_kernel += path_kind(rib->words.members[i].path) == PATH_KERNEL;
	return n_kernel > 0 && n_kernel < n;
}

/*
 * Return the group word of a slot for its present next hops. It is the published one if
 * nothing has changed, or else a word with new buckets if there are several paths. `least`:
 * with as few buckets as possible.
 */
static uint64_t
word_compute(struct rib *rib, const struct slot *s, bool least)
{
	uint64_t old = slot_word(rib, s->number), former = word_former(rib, s);
	bool keeps = group_word_is_block(former);
	const fib_path *keep = keeps ? group_word_buckets(former) : NULL;
	unsigned int log2_keep = keeps ? group_word_log2(former) : 0, log2_n;
	uint32_t n = word_choose_paths(rib, s);
	fib_path *block;

	rib->words.mixed = members_are_mixed(rib, n);
	if (n == 1)
		return group_word_single(rib->words.members[0].path);
	log2_n = group_log2(rib->words.members, n, least ? 0 : log2_keep);
	block = mem_or_abort(
		aligned_alloc(64, (group_block_bytes(log2_n) + 63) & ~(size_t)63));
	group_fill(block, log2_n, rib->words.members, n, keep, log2_keep);
	if (former == old && log2_n == log2_keep &&
	    memcmp(block, keep, sizeof(*block) << log2_n) == 0) {
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
	word = word_compute(rib, s, false);
	if (word == slot_word(rib, s->number))
		return egress_is_current(rib, s);
	if (group_word_is_block(word))
		free(word_own_buckets(word));
	return false;
}

/*
 * Review the kernel's routes if the kernel ignores the slot now, or no longer ignores it.
 */
static void
slot_note_ignored(struct rib *rib, struct slot *s)
{
	for (unsigned int v = 0; v < 2; v++) {
		bool ignored = slot_ignored(s, v == 0 ? 4 : 6);

		if (s->ignored[v] == ignored)
			continue;
		s->ignored[v] = ignored;
		kroutes_review(&rib->kroutes);
	}
}

/* Compute the group word of a slot, and store it if it differs. */
static void
word_publish(struct rib *rib, struct slot *s)
{
	uint64_t old = slot_word(rib, s->number);
	uint64_t word = word_compute(rib, s, rib->words.block_bytes > BLOCKS_AMPLE_BYTES);

	s->former = 0;
	slot_set_mixed(s, rib->words.mixed);
	egress_publish(rib, s);
	slot_note_ignored(rib, s);
	if (word == old && s->version != 0)
		return;
	s->version = ++rib->words.version;
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
		rib->words.block_bytes += group_block_bytes(s->log2_block);
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
	/*
	 * Publish the words first that keep buckets of other slots, because the words of
	 * the other slots may change as well.
	 */
	for (uint32_t i = 0; i < rib->slots.dirty.n; i++) {
		struct slot *s = slot_at(&rib->slots, rib->slots.dirty.v[i]);

		if (s->former != 0 && (s->dirty & SLOT_PATHS) != 0) {
			word_publish(rib, s);
			s->dirty &= (uint8_t)~SLOT_PATHS;
		}
	}
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
	egress_clear(rib, slot);
}

void
words_free(struct rib *rib)
{
	free(rib->words.members);
	vec32_free(&rib->words.egress);
}
