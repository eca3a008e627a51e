/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Slots of fib->group: their numbers, the references to them, and the lists of slots that
 * wait for the commit. [rib]
 *
 * A slot without routes lives until the end of the round, because a replace often takes the
 * last route away and gives it back. Then the slot is retired: its word stays until no
 * reader can have its number, and only then the number is free. This file writes no group
 * words.
 */
#include "rib/slot.h"

#include <assert.h>
#include <stdlib.h>

#include "base/kernel_event.h"
#include "base/limits.h"
#include "fib/rules.h"
#include "rib/index.h"
#include "rib/link.h"
#include "rib/impl.h"

static void
slot_push_idle(struct rib *rib, struct slot *s)
{
	if (!s->idle)
		vec32_push(&rib->slots.idle, s->number);
	s->idle = true;
}

uint64_t
slot_word(const struct rib *rib, uint32_t number)
{
	return atomic_load_explicit(&rib->fib->group[number], memory_order_relaxed);
}

/*
 * Return how many slots limits.groups counts. The limit does not apply to exempt content,
 * which gets a slot even when the limit is reached.
 */
static uint32_t
slots_count_limited(const struct rib *rib)
{
	return rib->slots.n - rib->slots.n_exempt;
}

struct slot *
slot_new(struct rib *rib, enum slot_kind kind, bool exempt)
{
	uint32_t number;
	struct slot *s;

	if (rib->slots.n >= rib->fib->group_end - 1 ||
	    (!exempt &&
	     slots_count_limited(rib) >= table_limit(rib->conf.limits, TABLE_groups))) {
		table_refuse(TABLE_groups);
		rib->slots.refused = true;
		return NULL;
	}
	if (fifo32_len(&rib->slots.unused) > 0) {
		number = fifo32_pop(&rib->slots.unused);
	} else {
		number = ++rib->slots.high;
		if (rib->slots.chunk[number / SLOT_CHUNK] == NULL)
			rib->slots.chunk[number / SLOT_CHUNK] =
				mem_or_abort(calloc(SLOT_CHUNK, sizeof(*s)));
	}
	s = slot_at(&rib->slots, number);
	*s = (struct slot){.number = number, .kind = (uint8_t)kind, .exempt = exempt};
	rib->slots.n++;
	rib->slots.n_exempt += exempt;
	table_used(TABLE_groups, slots_count_limited(rib));
	slot_push_idle(rib, s); /* until a route takes it */
	return s;
}

bool
slots_are_ample(const struct rib *rib)
{
	return slots_count_limited(rib) < table_limit(rib->conf.limits, TABLE_groups) / 2;
}

void
slot_set_exempt(struct rib *rib, struct slot *s, bool exempt)
{
	rib->slots.n_exempt += exempt - s->exempt;
	s->exempt = exempt;
	table_used(TABLE_groups, slots_count_limited(rib));
}

void
slot_note_end_point(struct rib *rib, struct slot *s)
{
	bool end_point = false;

	for (uint32_t i = 0; i < s->n_legs; i++)
		end_point |= s->leg[i].sid != 0;
	/* The walk gives the slot's routes numbers of SIDs, or takes them away. */
	if (end_point != s->end_point && s->refs > 0)
		(void)resync_from(&rib->resync, 1);
	s->end_point = end_point;
}

void
slot_note_refusal(struct rib *rib, struct slot *s)
{
	enum path_kind kind = s->n_legs == 1 ? s->leg[0].hop.kind : PATH_NONE;
	bool refuses = path_refuses(kind);

	/* The walk gives the slot's routes their place in the views (view.c). */
	if (refuses != s->refuses && s->refs > 0 && rib->vrfs.views.n > 0)
		(void)resync_from(&rib->resync, 1);
	s->refuses = refuses;
}

void
slot_dirty(struct rib *rib, struct slot *s, uint8_t what)
{
	s->dirty |= what;
	if (!s->queued)
		vec32_push(&rib->slots.dirty, s->number);
	s->queued = true;
}

bool
leg_is_dead(const struct leg *leg)
{
	const struct link *link = leg->link;

	return leg->hop.dead && link != NULL &&
	       (link->no_ipv4 || (link->known && !link->up));
}

/* Return true if Linux passes over the next hop when it looks up a route. */
static bool
leg_is_passed_over(const struct leg *leg, uint8_t family)
{
	const struct link *link = leg->link;

	if (link == NULL || !link->known)
		return false;
	return leg_is_dead(leg) || (!link->up && link->ignore_linkdown[family == 6]);
}

bool
slot_ignored(const struct slot *s, uint8_t family)
{
	if (!family_is_ip(family))
		return false; /* a label has no other route in Linux */
	for (uint32_t i = 0; i < s->n_legs; i++)
		if (!leg_is_passed_over(&s->leg[i], family))
			return false;
	return s->n_legs > 0;
}

void
slot_note_family(struct rib *rib, uint32_t number, uint8_t family)
{
	struct slot *s = slot_at(&rib->slots, number);
	bool *has = family == 6 ? &s->of_ipv6 : &s->of_others;

	/* A leg by a link with IPv6 off serves some families only: see leg_path(). */
	if (!*has)
		slot_dirty(rib, s, SLOT_PATHS);
	*has = true;
}

void
slot_set_mixed(struct slot *s, bool mixed)
{
	uint32_t n = atomic_load_explicit(&kernel_status.mixed, memory_order_relaxed);

	if (s->mixed != mixed)
		atomic_store_explicit(&kernel_status.mixed, mixed ? n + 1 : n - 1,
				      memory_order_relaxed);
	s->mixed = mixed;
}

void
slot_ref(struct rib *rib, uint32_t number)
{
	slot_at(&rib->slots, number)->refs++;
}

void
slot_unref(struct rib *rib, uint32_t number)
{
	struct slot *s = slot_at(&rib->slots, number);

	assert(s->refs > 0);
	if (--s->refs == 0)
		slot_push_idle(rib, s);
}

void
slot_release(struct rib *rib, uint32_t number)
{
	struct slot *s = slot_at(&rib->slots, number);

	assert(s->kind == SLOT_RETIRED && s->refs == 0);
	s->kind = SLOT_FREE;
	rib->slots.n--;
	rib->slots.n_exempt -= s->exempt;
	table_used(TABLE_groups, slots_count_limited(rib));
	/* The routes without a slot are not recorded: a replay sends all routes again. */
	if (rib->slots.refused && !rib->stopping &&
	    slots_count_limited(rib) <=
		    table_capacity(table_limit(rib->conf.limits, TABLE_groups))) {
		rib->slots.refused = false;
		worker_send(rib->conf.fpm, msg_new(MSG_REPLAY, sizeof(struct msg)));
		worker_send(rib->conf.rtnl, msg_new(MSG_REPLAY, sizeof(struct msg)));
	}
	fifo32_push(&rib->slots.unused, number);
}

void
slots_free(struct rib *rib)
{
	for (uint32_t i = 1; i <= rib->slots.high; i++) {
		free(slot_at(&rib->slots, i)->leg);
		free(slot_at(&rib->slots, i)->block);
		free(slot_at(&rib->slots, i)->egress);
	}
	for (uint32_t i = 0; i < FIB_GROUP_MAX / SLOT_CHUNK; i++)
		free(rib->slots.chunk[i]);
	fifo32_free(&rib->slots.unused);
	vec32_free(&rib->slots.dirty);
	vec32_free(&rib->slots.idle);
}
