/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copy each change of the tables to the checkpoint: one record for each route of zebra,
 * each route of the kernel and each slot. The function that changes the object calls this
 * file. [rib]. These functions only write; restore.c reads the checkpoint of the last
 * daemon.
 */
#include "rib/mirror.h"

#include "base/clock.h"
#include "rib/checkpoint.h"
#include "rib/kroute.h"
#include "rib/impl.h"
#include "rib/routes.h"
#include "rib/nh_list.h"
#include "rib/source.h"

/* Return true if an object can be written now. If not, add its number to `missed`. */
static bool
mirror_is_on(const struct rib *rib, struct vec32 *missed, uint32_t number)
{
	if (!ckpt_is_quiesced(rib->ckpt))
		return rib->ckpt != NULL;
	vec32_push(missed, number);
	return false;
}

/*
 * Return true if a route of zebra can be written now, and set *number to its number. MACs
 * of EVPN are in no FIB in any session, so the checkpoint does not have them.
 */
static bool
route_is_mirrored(struct rib *rib, const struct route *r, uint32_t *number)
{
	if (rib->ckpt == NULL || r->family == FAMILY_MAC)
		return false;
	*number = routes_number(tables_routes(&rib->tables, r->table), r);
	return mirror_is_on(
		rib, r->table == RIB_TABLE_MAIN ? &rib->missed.main : &rib->missed.other,
		*number);
}

void
mirror_route(struct rib *rib, const struct route *r)
{
	const struct ckpt_route now = {.addr = route_addr(r),
				       .slot = r->zslot,
				       .family = (uint8_t)r->family,
				       .len = (uint8_t)r->len,
				       .protocol = (uint8_t)r->protocol,
				       .rtm_type = (uint8_t)r->rtm_type,
				       .table = r->table};
	uint32_t number;

	if (route_is_mirrored(rib, r, &number))
		ckpt_put_route(rib->ckpt, number, &now);
}

void
mirror_route_gone(struct rib *rib, const struct route *r)
{
	uint32_t number;

	if (route_is_mirrored(rib, r, &number))
		ckpt_drop_route(rib->ckpt, r->table, number);
}

/*
 * Write a kernel route. Tables of sources are left out, because their numbers are valid in
 * one process only.
 */
void
mirror_kernel(struct rib *rib, uint32_t number)
{
	const struct kroute *kr = &rib->kroutes.v[number];
	const struct route *r = kr->route;
	const struct ckpt_route route = {.addr = route_addr(r),
					 .slot = kr->slot,
					 .family = (uint8_t)r->family,
					 .len = (uint8_t)r->len,
					 .protocol = kr->protocol,
					 .rtm_type = kr->rtm_type,
					 .table = r->table};
	const struct ckpt_kernel kernel = {
		.metric = kr->metric,
		.order = kr->order,
		.ifindex = kr->ifindex,
		.source4 = kr->source4,
		.scope = kr->scope,
		.preference = kr->preference,
		.flags =
			(uint8_t)(kr->is_local * CKPT_IS_LOCAL |
				  kr->connected * CKPT_CONNECTED | kr->joins * CKPT_JOINS)};

	if (!source_is_table(r->table) && mirror_is_on(rib, &rib->missed.kernel, number))
		ckpt_put_kernel(rib->ckpt, number, &route, &kernel);
}

void
mirror_kernel_gone(struct rib *rib, uint32_t number)
{
	if (mirror_is_on(rib, &rib->missed.kernel, number))
		ckpt_drop_kernel(rib->ckpt, number);
}

void
mirror_slot(struct rib *rib, uint32_t slot, const struct nh_list *hops)
{
	/* The number of a class is valid in this process only, so store its MTU. */
	if (mirror_is_on(rib, &rib->missed.slots, slot))
		ckpt_put_slot(rib->ckpt, slot, hops,
			      fib_class_mtu(rib->fib, hops->v[0].mtu_class), rib->stacks.v);
}

void
mirror_slot_gone(struct rib *rib, uint32_t slot)
{
	if (mirror_is_on(rib, &rib->missed.slots, slot))
		ckpt_drop_slot(rib->ckpt, slot);
}

void
mirror_zebra(struct rib *rib, uint32_t nl_pid, uint32_t held_until_s)
{
	if (rib->ckpt != NULL && !rib->ckpt->quiesced)
		ckpt_zebra(rib->ckpt, nl_pid, held_until_s);
}

void
mirror_alive(struct rib *rib)
{
	if (rib->ckpt != NULL)
		ckpt_alive(rib->ckpt, boottime_ms());
}

/* --- after a cancelled handover ------------------------------------------------------- */

/*
 * Write routes of zebra again, or remove them. `table`: one of the tables with these
 * numbers.
 */
static void
routes_resume(struct rib *rib, struct vec32 *missed, struct routes *routes, uint32_t table)
{
	for (uint32_t i = 0; i < missed->n; i++) {
		const struct route *r = route_at(routes, missed->v[i]);

		/* The number may be free, or a route that is not mirrored may have it. */
		if (r->family != 0 && r->family != FAMILY_MAC && r->zslot != 0)
			mirror_route(rib, r);
		else
			ckpt_drop_route(rib->ckpt, table, missed->v[i]);
	}
	missed->n = 0;
}

static void
kernel_resume(struct rib *rib)
{
	struct vec32 *missed = &rib->missed.kernel;

	for (uint32_t i = 0; i < missed->n; i++) {
		const struct route *r = rib->kroutes.v[missed->v[i]].route;

		if (r != NULL && !source_is_table(r->table))
			mirror_kernel(rib, missed->v[i]);
		else
			ckpt_drop_kernel(rib->ckpt, missed->v[i]);
	}
	missed->n = 0;
}

static void
slots_resume(struct rib *rib)
{
	struct vec32 *missed = &rib->missed.slots;

	for (uint32_t i = 0; i < missed->n; i++) {
		const struct slot *s = slot_at(&rib->slots, missed->v[i]);

		nh_list_clear(&rib->scratch);
		for (uint32_t j = 0; j < s->n_legs; j++)
			*nh_list_push(&rib->scratch) = s->leg[j].hop;
		if (rib->scratch.n > 0)
			mirror_slot(rib, missed->v[i], &rib->scratch);
		else
			ckpt_drop_slot(rib->ckpt, missed->v[i]);
	}
	missed->n = 0;
}

void
mirror_resume(struct rib *rib)
{
	if (rib->ckpt == NULL)
		return;
	slots_resume(rib); /* first: routes name slots */
	routes_resume(rib, &rib->missed.main, &rib->tables.main, RIB_TABLE_MAIN);
	routes_resume(rib, &rib->missed.other, &rib->tables.other, FPM_TABLE_NONE);
	kernel_resume(rib);
}

void
mirror_missed_free(struct rib *rib)
{
	vec32_free(&rib->missed.main);
	vec32_free(&rib->missed.other);
	vec32_free(&rib->missed.kernel);
	vec32_free(&rib->missed.slots);
}
