/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Slots of fib->group: their numbers, the references to them, and which of them wait for the
 * commit. [rib].
 *
 * A slot without routes lives until the end of the round (a replace often takes the last
 * route away and gives it back), then dies: its word stays as it is until no reader can
 * hold its number, and only then the number is free. Nothing here writes group words.
 */
#include "rib/slot.h"

#include <assert.h>
#include <stdlib.h>

#include "base/limits.h"
#include "rib/index.h"
#include "rib/rib_impl.h"

static void
slot_push_idle(struct rib *rib, struct slot *s)
{
	if (!s->idle)
		vec32_push(&rib->slots.idle, s->number);
	s->idle = true;
}

/* Slots that the limit is about: small content has places of its own, be the rest full. */
static uint32_t
slots_count_large(const struct rib *rib)
{
	return rib->slots.n - rib->slots.n_small;
}

struct slot *
slot_new(struct rib *rib, enum slot_kind kind, bool small)
{
	uint32_t number;
	struct slot *s;

	if (rib->slots.n >= rib->fib->group_end - 1 ||
	    (!small &&
	     slots_count_large(rib) >= table_limit(rib->conf.limits, TABLE_groups))) {
		table_refuse(TABLE_groups);
		rib->slots.is_short = true;
		return NULL;
	}
	if (rib->slots.unused_at < rib->slots.unused.n) {
		number = rib->slots.unused.v[rib->slots.unused_at++];
		if (rib->slots.unused_at == rib->slots.unused.n)
			rib->slots.unused_at = rib->slots.unused.n = 0;
	} else {
		number = ++rib->slots.high;
		if (rib->slots.chunk[number / SLOT_CHUNK] == NULL)
			rib->slots.chunk[number / SLOT_CHUNK] =
				must(calloc(SLOT_CHUNK, sizeof(*s)));
	}
	s = slot_at(&rib->slots, number);
	*s = (struct slot){.number = number, .kind = (uint8_t)kind, .small = small};
	rib->slots.n++;
	rib->slots.n_small += small;
	table_used(TABLE_groups, slots_count_large(rib));
	slot_push_idle(rib, s); /* until a route takes it */
	return s;
}

void
slot_set_small(struct rib *rib, struct slot *s, bool small)
{
	rib->slots.n_small += small - s->small;
	s->small = small;
	table_used(TABLE_groups, slots_count_large(rib));
}

void
slot_dirty(struct rib *rib, struct slot *s, uint8_t what)
{
	s->dirty |= what;
	if (!s->queued)
		vec32_push(&rib->slots.dirty, s->number);
	s->queued = true;
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

	assert(s->kind == SLOT_DYING && s->refs == 0);
	s->kind = SLOT_FREE;
	rib->slots.n--;
	rib->slots.n_small -= s->small;
	table_used(TABLE_groups, slots_count_large(rib));
	/* Which routes found none is not noted: zebra says them all again, to who goes on. */
	if (rib->slots.is_short && !rib->stopping &&
	    slots_count_large(rib) <=
		    table_capacity(table_limit(rib->conf.limits, TABLE_groups))) {
		rib->slots.is_short = false;
		worker_send(rib->conf.fpm, msg_new(MSG_REPLAY, sizeof(struct msg)));
	}
	vec32_push(&rib->slots.unused, number);
}

void
slots_free(struct rib *rib)
{
	for (uint32_t i = 1; i <= rib->slots.high; i++) {
		free(slot_at(&rib->slots, i)->leg);
		free(slot_at(&rib->slots, i)->block);
	}
	for (uint32_t i = 0; i < FIB_GROUP_MAX / SLOT_CHUNK; i++)
		free(rib->slots.chunk[i]);
	vec32_free(&rib->slots.unused);
	vec32_free(&rib->slots.dirty);
	vec32_free(&rib->slots.idle);
}
