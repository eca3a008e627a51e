/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The contents of slots: which slot has which content, which routes share it, which session
 * takes it over. [rib]
 *
 * A nexthop id has a slot of its own while routes name it, because a later NEWNEXTHOP must
 * change it alone. When a session ends, zebra may number its ids again. The slots then
 * become orphans with frozen content. If an id of the next session has the same content, it
 * adopts the orphan, so that a replay rewrites no prefix. Content without an id is shared
 * by all its routes. This file writes no group words.
 */
#include "rib/content.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "rib/index.h"
#include "rib/leg.h"
#include "rib/mirror.h"
#include "rib/nexthop.h"
#include "rib/rib_impl.h"
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
	if (rib->contents.mtu_high + 1 == FIB_MTU_MAX) {
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

/* Return the first slot with this content and one of the two kinds, or NULL. */
static struct slot *
content_find(struct rib *rib, const struct nh_list *hops, uint64_t hash,
	     enum slot_kind kind, enum slot_kind or_kind)
{
	for (uint32_t i = hidx_first(&rib->contents.by_hops, hash); i != 0;
	     i = hidx_next(&rib->contents.by_hops, i)) {
		struct slot *s = slot_at(&rib->slots, i);

		if ((s->kind == kind || s->kind == or_kind) && slot_has_hops(s, hops))
			return s;
	}
	return NULL;
}

/*
 * Give an orphan to a new user. Whether the limit counts it depends on the present content.
 */
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
	 * Attach the new legs first, so that an adjacency in both keeps its number and its
	 * watch.
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
	mirror_slot(rib, s->number, hops);
	slot_dirty(rib, s, SLOT_PATHS);
}

uint32_t
slot_for_hops(struct rib *rib, const struct nh_list *hops, uint32_t hint)
{
	struct slot *s = hint == 0 ? NULL : slot_at(&rib->slots, hint);
	uint64_t hash;

	if (s != NULL && s->kind == SLOT_INLINE && slot_has_hops(s, hops))
		return hint;
	hash = nh_list_hash(hops, rib->fib->seed);
	s = content_find(rib, hops, hash, SLOT_INLINE, SLOT_INLINE);
	if (s == NULL && (s = content_find(rib, hops, hash, SLOT_ORPHAN, SLOT_ORPHAN))) {
		/* zebra stopped using nexthop ids: equal content keeps its slot. */
		slot_adopt(rib, s, SLOT_INLINE, 0, nh_list_needs_no_neighbor(hops));
	}
	if (s == NULL) {
		s = slot_new(rib, SLOT_INLINE, nh_list_needs_no_neighbor(hops));
		if (s == NULL)
			return rib->contents.unresolved;
		slot_set_hops(rib, s, hops);
		content_add(rib, s, hash);
	}
	return s->number;
}

uint32_t
slot_find_hops(struct rib *rib, const struct nh_list *hops)
{
	const struct slot *s = content_find(rib, hops, nh_list_hash(hops, rib->fib->seed),
					    SLOT_INLINE, SLOT_INLINE);

	return s == NULL ? 0 : s->number;
}

uint32_t
slot_restore(struct rib *rib, const struct nh_list *hops)
{
	struct slot *s = slot_new(rib, SLOT_ORPHAN, nh_list_needs_no_neighbor(hops));

	if (s == NULL)
		return 0;
	slot_set_hops(rib, s, hops);
	content_add(rib, s, nh_list_hash(hops, rib->fib->seed));
	rib->contents.n_orphans++;
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

/*
 * Return an orphan with the content of `hops`, preferably the slot that the route has now,
 * or NULL.
 */
static struct slot *
slot_find_adoptable(struct rib *rib, const struct nh_list *hops, uint32_t hint)
{
	struct slot *s = hint == 0 ? NULL : slot_at(&rib->slots, hint);

	if (rib->contents.n_orphans == 0 || hops->unresolved)
		return NULL;
	if (s != NULL && s->kind == SLOT_ORPHAN && slot_has_hops(s, hops))
		return s;
	return content_find(rib, hops, nh_list_hash(hops, rib->fib->seed), SLOT_ORPHAN,
			    SLOT_ORPHAN);
}

uint32_t
slot_of_id(const struct rib *rib, const struct nh *nh, uint16_t mtu_class)
{
	uint32_t number = nh->slot;

	while (number != 0 && slot_at(&rib->slots, number)->mtu_class != mtu_class)
		number = slot_at(&rib->slots, number)->sibling;
	return number;
}

uint32_t
slot_for_id(struct rib *rib, nh_id id, uint16_t mtu_class, uint32_t hint)
{
	struct nh *nh = nh_get(rib, id);
	uint32_t number = slot_of_id(rib, nh, mtu_class);
	struct slot *s;

	if (number != 0)
		return number;
	nh_hops(rib, nh, mtu_class, &rib->scratch);
	/* An orphan has routes of zebra, which must not follow an id of the kernel. */
	s = (id & NH_OF_KERNEL) != 0 ? NULL : slot_find_adoptable(rib, &rib->scratch, hint);
	if (s != NULL) {
		content_del(rib, s);
		slot_adopt(rib, s, SLOT_ID, (uint32_t)id, false);
	} else {
		s = slot_new(rib, SLOT_ID, false);
		if (s == NULL) {
			nh_maybe_free(rib, nh);
			return rib->contents.unresolved;
		}
		slot_set_hops(rib, s, &rib->scratch);
		s->nhid = (uint32_t)id;
	}
	s->of_kernel = (id & NH_OF_KERNEL) != 0;
	s->mtu_class = mtu_class;
	s->sibling = nh->slot;
	nh->slot = s->number;
	return s->number;
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
	return nh_find(rib, s->of_kernel ? nh_id_of_kernel(s->nhid) : s->nhid);
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
