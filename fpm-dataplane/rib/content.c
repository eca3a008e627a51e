/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The contents of slots: which slot has which content, which routes share it, which session
 * takes it over. [rib]
 *
 * A nexthop id has a slot of its own while routes name it, because a later NEWNEXTHOP must
 * change only the routes of this id. After a session, zebra may use its ids for other next
 * hops. The slots then become orphans with frozen content. If an id of the next session has
 * the same content, it adopts the orphan, so that a replay rewrites no prefix. A slot
 * without an id is shared by all routes with its content.
 *
 * zebra makes a new id for each change of a route's next hops. A new slot therefore keeps
 * the buckets of the slot that the route had (`former`), as far as the members are equal,
 * and only the flows of members that left move. If the id has a slot already, and the flows
 * of the route would move between members there, the route gets a variant: another slot
 * with the same content and other buckets. This file writes no group words.
 */
#include "rib/content.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "rib/group.h"
#include "rib/index.h"
#include "rib/leg.h"
#include "rib/mirror.h"
#include "rib/nexthop.h"
#include "rib/impl.h"
#include "rib/sid.h"
#include "rib/slot.h"
#include "rib/nh_list.h"

uint16_t
mtu_class_of(struct rib *rib, uint8_t family, uint32_t mtu_bytes)
{
	/* Minimum MTU of every link: RFC 791, 3.2; RFC 8200, 5. */
	uint32_t least = family == 4 ? 68 : 1280;
	uint16_t mtu;

	if (mtu_bytes == 0 || mtu_bytes >= UINT16_MAX)
		return 0;
	mtu = (uint16_t)(mtu_bytes < least ? least : mtu_bytes);
	for (uint32_t c = 1; c <= rib->contents.mtu_high; c++)
		if (atomic_load_explicit(&rib->fib->mtu_bytes[c], memory_order_relaxed) ==
		    mtu)
			return (uint16_t)c;
	if (rib->contents.mtu_high + 1 == FIB_CLASS_PIPE) {
		table_refuse(TABLE_mtus);
		return 0;
	}
	/*
	 * The value of a class never changes. A path of this class is published later, with
	 * release.
	 */
	atomic_store_explicit(&rib->fib->mtu_bytes[++rib->contents.mtu_high], mtu,
			      memory_order_relaxed);
	table_used(TABLE_mtus, rib->contents.mtu_high);
	return (uint16_t)rib->contents.mtu_high;
}

uint16_t
class_of_event(struct rib *rib, const struct fpm_event *ev)
{
	return ev->label_mode != LABEL_MODE_DEFAULT
		       ? class_of_label_mode((enum label_mode)ev->label_mode)
		       : mtu_class_of(rib, ev->prefix.family, ev->mtu_bytes);
}

bool
slot_has_hops(const struct slot *s, const struct nh_list *hops)
{
	if (s->n_legs != hops->n)
		return false;
	for (uint32_t i = 0; i < hops->n; i++)
		if (memcmp(&s->leg[i].hop, &hops->v[i], sizeof(struct next_hop)) != 0)
			return false;
	return true;
}

static void
content_add(struct rib *rib, struct slot *s, uint64_t hash)
{
	hidx_add(&rib->contents.by_hops, hash, s->number);
	s->indexed = true;
}

static void
content_del(struct rib *rib, struct slot *s)
{
	if (s->indexed)
		hidx_del(&rib->contents.by_hops, s->number);
	s->indexed = false;
}

/* Return the first slot with this content and kind, or NULL. */
static struct slot *
content_find(struct rib *rib, const struct nh_list *hops, uint64_t hash,
	     enum slot_kind kind)
{
	for (uint32_t i = hidx_first(&rib->contents.by_hops, hash); i != 0;
	     i = hidx_next(&rib->contents.by_hops, i)) {
		struct slot *s = slot_at(&rib->slots, i);

		if (s->kind == kind && slot_has_hops(s, hops))
			return s;
	}
	return NULL;
}

/* Give an orphan to a new user. `exempt`: limits.groups does not count the slot. */
static void
slot_adopt(struct rib *rib, struct slot *s, enum slot_kind kind, uint32_t nhid, bool exempt)
{
	s->kind = (uint8_t)kind;
	s->nhid = nhid;
	slot_set_exempt(rib, s, exempt);
	rib->contents.n_orphans--;
	rib->count.adopted++;
}

static void
slot_drop_legs(struct rib *rib, struct slot *s)
{
	for (uint32_t i = 0; i < s->n_legs; i++)
		leg_detach(rib, &s->leg[i]);
	rib->contents.leg_bytes -= s->n_legs * sizeof(*s->leg);
	free(s->leg);
	s->leg = NULL;
	s->n_legs = 0;
}

void
slot_set_hops(struct rib *rib, struct slot *s, const struct nh_list *hops)
{
	struct leg *leg = mem_or_abort(calloc(hops->n, sizeof(*leg)));

	/*
	 * Attach the new legs before the old ones are detached, so that an adjacency of
	 * both keeps its number and its watch.
	 */
	for (uint32_t i = 0; i < hops->n; i++) {
		leg[i].hop = hops->v[i];
		leg[i].slot = s;
		leg_attach(rib, &leg[i]);
	}
	slot_drop_legs(rib, s);
	s->leg = leg;
	s->n_legs = hops->n;
	rib->contents.leg_bytes += hops->n * sizeof(*leg);
	slot_note_end_point(rib, s);
	slot_note_refusal(rib, s);
	mirror_slot(rib, s->number, hops);
	slot_dirty(rib, s, SLOT_PATHS);
}

/*
 * Return the slot whose published buckets carry the flows of the routes of slot `number`.
 * Return 0 if that slot is not published or has one path: any change then moves only flows
 * that have to move.
 */
static uint32_t
slot_former(const struct rib *rib, uint32_t number)
{
	const struct slot *s;

	if (number == 0)
		return 0;
	s = slot_at(&rib->slots, number);
	if (s->version == 0)
		number = s->former;
	return group_word_is_block(slot_word(rib, number)) ? number : 0;
}

/*
 * Return the cache entry for the slot that was last chosen for routes whose flows use slot
 * `former`. All routes of one slot usually move to another slot together.
 */
static struct choice_memo *
memo_at(struct rib *rib, uint32_t former, uint64_t what)
{
	uint64_t from = slot_at(&rib->slots, former)->version;
	uint64_t mix = (from ^ what * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;

	return &rib->contents.memo[mix >> 55];
}

/*
 * Return the entry of an earlier choice if the chosen slot has not changed since, or NULL.
 */
static const struct choice_memo *
memo_recall(struct rib *rib, uint32_t former, uint64_t what)
{
	const struct choice_memo *memo;
	struct slot *s;

	if (former == 0)
		return NULL;
	memo = memo_at(rib, former, what);
	if (memo->slot == 0 || memo->what != what ||
	    memo->from != slot_at(&rib->slots, former)->version)
		return NULL;
	s = slot_at(&rib->slots, memo->slot);
	return s->version == memo->version ? memo : NULL;
}

/* Use the slot of an entry for one more route. */
static uint32_t
memo_use(struct rib *rib, const struct choice_memo *memo)
{
	rib->count.flows_moved += memo->moves;
	return memo->slot;
}

/*
 * Record and return the choice. `moves`: the choice moves flows of next hops that stay,
 * because no slot of this content has the flows of `former`, and no slot may be added.
 */
static uint32_t
memo_record(struct rib *rib, uint32_t former, uint64_t what, const struct slot *s,
	    bool moves)
{
	if (former != 0)
		*memo_at(rib, former, what) =
			(struct choice_memo){slot_at(&rib->slots, former)->version, what,
					     s->version, s->number, moves};
	rib->count.flows_moved += moves;
	return s->number;
}

/*
 * Keep a slot because no slot is free, although flows of next hops that stay move. Count
 * this, and return the number of the slot.
 */
static uint32_t
slot_make_do(struct rib *rib, const struct slot *s)
{
	rib->count.flows_moved++;
	return s->number;
}

/* The slot of one content that suits a route best. */
struct choice {
	struct slot *slot; /* NULL: none */
	uint32_t excess;   /* 0: no flow moves without need */
	uint32_t n;        /* slots seen */
};

/*
 * Set the best choice to slot `s` if it moves fewer flows away from the buckets of
 * `former`.
 */
static void
choice_consider(const struct rib *rib, struct choice *best, struct slot *s, uint32_t former)
{
	uint32_t from = s->version != 0 ? s->number : s->former, excess = 0;

	if (former != 0 && from != 0 && from != former)
		excess = group_excess(slot_word(rib, former), slot_word(rib, from));
	best->n++;
	if (best->slot == NULL || excess < best->excess) {
		best->slot = s;
		best->excess = excess;
	}
}

/* Return true if the route should have a slot of its own rather than the best one. */
static bool
choice_is_poor(const struct rib *rib, const struct choice *best)
{
	return best->slot == NULL ||
	       (best->excess > 0 && best->n < SLOT_VARIANTS && slots_are_ample(rib));
}

/* Let the first word of a new slot keep the buckets of `former`. Return the slot. */
static struct slot *
slot_inherit(struct slot *s, uint32_t former)
{
	if (s->version == 0 && s->former == 0)
		s->former = former;
	return s;
}

static struct choice
content_choose(struct rib *rib, const struct nh_list *hops, uint64_t hash, uint32_t former)
{
	struct choice best = {0};

	for (uint32_t i = hidx_first(&rib->contents.by_hops, hash);
	     i != 0 && (best.slot == NULL || best.excess > 0);
	     i = hidx_next(&rib->contents.by_hops, i)) {
		struct slot *s = slot_at(&rib->slots, i);

		if (s->kind == SLOT_INLINE && slot_has_hops(s, hops))
			choice_consider(rib, &best, s, former);
	}
	return best;
}

uint32_t
slot_for_hops(struct rib *rib, const struct nh_list *hops, uint32_t hint)
{
	struct slot *s = hint == 0 ? NULL : slot_at(&rib->slots, hint), *chosen;
	const struct choice_memo *memo;
	uint32_t former;
	struct choice best;
	uint64_t hash;

	if (s != NULL && s->kind == SLOT_INLINE && slot_has_hops(s, hops))
		return hint;
	hash = nh_list_hash(hops, rib->fib->seed);
	former = slot_former(rib, hint);
	memo = memo_recall(rib, former, hash);
	chosen = memo == NULL ? NULL : slot_at(&rib->slots, memo->slot);
	if (chosen != NULL && chosen->kind == SLOT_INLINE && slot_has_hops(chosen, hops))
		return memo_use(rib, memo);
	best = content_choose(rib, hops, hash, former);
	if (!choice_is_poor(rib, &best))
		return memo_record(rib, former, hash, slot_inherit(best.slot, former),
				   best.excess > 0);
	/* zebra may have stopped using nexthop ids: the route keeps an equal orphan. */
	if (s == NULL || s->kind != SLOT_ORPHAN || !slot_has_hops(s, hops))
		s = best.slot != NULL ? NULL : content_find(rib, hops, hash, SLOT_ORPHAN);
	if (s != NULL) {
		slot_adopt(rib, s, SLOT_INLINE, 0, nh_list_needs_no_neighbor(hops));
		return memo_record(rib, former, hash, s, false);
	}
	s = slot_new(rib, SLOT_INLINE, nh_list_needs_no_neighbor(hops));
	if (s == NULL)
		return best.slot != NULL ? slot_make_do(rib, best.slot)
					 : rib->contents.unresolved;
	slot_set_hops(rib, s, hops);
	content_add(rib, s, hash);
	return memo_record(rib, former, hash, slot_inherit(s, former), false);
}

uint32_t
slot_find_hops(struct rib *rib, const struct nh_list *hops)
{
	const struct slot *s =
		content_find(rib, hops, nh_list_hash(hops, rib->fib->seed), SLOT_INLINE);

	return s == NULL ? 0 : s->number;
}

uint32_t
slot_restore(struct rib *rib, const struct nh_list *hops, bool of_kernel)
{
	struct slot *s = slot_new(rib, of_kernel ? SLOT_INLINE : SLOT_ORPHAN,
				  nh_list_needs_no_neighbor(hops));

	if (s == NULL)
		return 0;
	slot_set_hops(rib, s, hops);
	content_add(rib, s, nh_list_hash(hops, rib->fib->seed));
	rib->contents.n_orphans += !of_kernel;
	return s->number;
}

uint32_t
slot_for_kind(struct rib *rib, enum path_kind kind)
{
	struct next_hop hop;
	struct nh_list hops = {.v = &hop, .n = 1, .cap = 1};

	next_hop_special(&hop, kind);
	return slot_for_hops(rib, &hops, 0);
}

void
slot_make_suppressed(struct rib *rib)
{
	if (rib->contents.suppressed != 0)
		return;
	rib->contents.suppressed = slot_for_kind(rib, PATH_THROW);
	slot_ref(rib, rib->contents.suppressed);
}

/*
 * Return an orphan with the content of `hops`, preferably the slot that the route has now,
 * or NULL. `again`: the id has a slot already, so no other orphan can be used.
 */
static struct slot *
slot_find_adoptable(struct rib *rib, const struct nh_list *hops, uint32_t hint, bool again)
{
	struct slot *s = hint == 0 ? NULL : slot_at(&rib->slots, hint);

	if (rib->contents.n_orphans == 0 || hops->unresolved)
		return NULL;
	if (s != NULL && s->kind == SLOT_ORPHAN && slot_has_hops(s, hops))
		return s;
	if (again)
		return NULL;
	return content_find(rib, hops, nh_list_hash(hops, rib->fib->seed), SLOT_ORPHAN);
}

static struct choice
id_choose(struct rib *rib, const struct nh *nh, uint16_t mtu_class, uint32_t former)
{
	struct choice best = {0};

	for (uint32_t i = nh->slot; i != 0 && (best.slot == NULL || best.excess > 0);
	     i = slot_at(&rib->slots, i)->sibling)
		if (slot_at(&rib->slots, i)->mtu_class == mtu_class)
			choice_consider(rib, &best, slot_at(&rib->slots, i), former);
	return best;
}

/* Return the id that a slot of kind SLOT_ID follows. */
static nh_id
slot_id(const struct slot *s)
{
	return s->of_kernel ? nh_id_of_kernel(s->nhid) : s->nhid;
}

/* Return true if the slot follows this id for routes of this MTU class. */
static bool
slot_follows(const struct slot *s, nh_id id, uint16_t mtu_class)
{
	return s->kind == SLOT_ID && slot_id(s) == id && s->mtu_class == mtu_class;
}

uint32_t
slot_of_id(const struct rib *rib, const struct nh *nh, uint16_t mtu_class)
{
	uint32_t number = nh->slot;

	while (number != 0 && slot_at(&rib->slots, number)->mtu_class != mtu_class)
		number = slot_at(&rib->slots, number)->sibling;
	return number;
}

bool
slots_are_variants(const struct rib *rib, uint32_t a, uint32_t b)
{
	const struct slot *x = slot_at(&rib->slots, a), *y = slot_at(&rib->slots, b);

	if (a == b || x->kind != y->kind || x->n_legs != y->n_legs)
		return a == b;
	if (x->kind == SLOT_ID)
		return slot_follows(x, slot_id(y), y->mtu_class);
	for (uint32_t i = 0; i < x->n_legs; i++)
		if (!next_hops_agree(&x->leg[i].hop, &y->leg[i].hop))
			return false;
	return true;
}

uint32_t
slot_for_id(struct rib *rib, nh_id id, uint16_t mtu_class, uint32_t hint)
{
	uint64_t what = id << 16 | mtu_class;
	const struct choice_memo *memo;
	struct choice best;
	uint32_t former;
	struct slot *s;
	struct nh *nh;

	if (hint != 0 && slot_follows(slot_at(&rib->slots, hint), id, mtu_class))
		return hint;
	former = slot_former(rib, hint);
	memo = memo_recall(rib, former, what);
	if (memo != NULL && slot_follows(slot_at(&rib->slots, memo->slot), id, mtu_class))
		return memo_use(rib, memo);
	nh = nh_get(rib, id);
	best = id_choose(rib, nh, mtu_class, former);
	if (!choice_is_poor(rib, &best))
		return memo_record(rib, former, what, slot_inherit(best.slot, former),
				   best.excess > 0);
	nh_hops(rib, nh, mtu_class, &rib->scratch);
	/* An orphan has routes of zebra, which must not follow an id of the kernel. */
	s = (id & NH_OF_KERNEL) != 0
		    ? NULL
		    : slot_find_adoptable(rib, &rib->scratch, hint, best.slot != NULL);
	if (s != NULL) {
		content_del(rib, s);
		slot_adopt(rib, s, SLOT_ID, (uint32_t)id, false);
	} else {
		s = slot_new(rib, SLOT_ID, false);
		if (s == NULL && best.slot != NULL)
			return slot_make_do(rib, best.slot);
		if (s == NULL) {
			nh_maybe_free(rib, nh);
			return rib->contents.unresolved;
		}
		slot_set_hops(rib, s, &rib->scratch);
		s->nhid = (uint32_t)id;
		slot_inherit(s, former);
	}
	s->of_kernel = (id & NH_OF_KERNEL) != 0;
	s->mtu_class = mtu_class;
	s->sibling = nh->slot;
	nh->slot = s->number;
	return memo_record(rib, former, what, s, false);
}

/*
 * Keep the content of a slot, but stop following its id, which belongs to an ended session.
 */
static void
slot_orphan(struct rib *rib, struct slot *s)
{
	struct nh_list hops = {0};

	for (uint32_t i = 0; i < s->n_legs; i++)
		*nh_list_push(&hops) = s->leg[i].hop;
	s->kind = SLOT_ORPHAN;
	s->sibling = 0;
	rib->contents.n_orphans++;
	content_add(rib, s, nh_list_hash(&hops, rib->fib->seed));
	free(hops.v);
}

struct nh *
slot_nh(const struct rib *rib, const struct slot *s)
{
	return nh_find(rib, slot_id(s));
}

void
slots_orphan(struct rib *rib)
{
	for (uint32_t i = 1; i <= rib->nhs.high; i++) {
		const struct nh *nh = rib->nhs.v[i];

		if (nh == NULL || (nh->id & NH_OF_KERNEL) != 0)
			continue;
		for (uint32_t at = nh->slot, next; at != 0; at = next) {
			next = slot_at(&rib->slots, at)->sibling;
			slot_orphan(rib, slot_at(&rib->slots, at));
		}
	}
}

void
slot_retire(struct rib *rib, struct slot *s)
{
	struct nh *nh;
	uint32_t *at;

	if (s->kind == SLOT_ORPHAN)
		rib->contents.n_orphans--;
	content_del(rib, s);
	if (s->kind == SLOT_ID) {
		nh = slot_nh(rib, s);
		for (at = &nh->slot; *at != s->number;)
			at = &slot_at(&rib->slots, *at)->sibling;
		*at = s->sibling;
		nh_maybe_free(rib, nh);
	}
	mirror_slot_gone(rib, s->number);
	s->kind = SLOT_RETIRED;
	slot_set_mixed(s, false);
	slot_drop_legs(rib, s);
}

void
contents_init(struct rib *rib)
{
	rib->contents.unresolved = slot_for_kind(rib, PATH_UNRESOLVED);
	slot_ref(rib, rib->contents.unresolved);
}

void
contents_free(struct rib *rib)
{
	hidx_free(&rib->contents.by_hops);
}
