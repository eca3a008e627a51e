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
#include "rib/rib_impl.h"
#include "rib/routes.h"
#include "rib/nh_list.h"
#include "rib/source.h"

static bool
mirror_is_on(const struct rib *rib)
{
	return rib->ckpt != NULL && !rib->ckpt->quiesced;
}

/* MACs of EVPN are in no FIB in any session, so the checkpoint does not have them. */
static bool
route_is_mirrored(const struct rib *rib, const struct route *r)
{
	return mirror_is_on(rib) && r->family != FAMILY_MAC;
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

	if (route_is_mirrored(rib, r))
		ckpt_put_route(rib->ckpt,
			       routes_number(tables_routes(&rib->tables, r->table), r),
			       &now);
}

void
mirror_route_gone(struct rib *rib, const struct route *r)
{
	if (route_is_mirrored(rib, r))
		ckpt_drop_route(rib->ckpt, r->table,
				routes_number(tables_routes(&rib->tables, r->table), r));
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

	if (mirror_is_on(rib) && !source_is_table(r->table))
		ckpt_put_kernel(rib->ckpt, number, &route, &kernel);
}

void
mirror_kernel_gone(struct rib *rib, uint32_t number)
{
	if (mirror_is_on(rib))
		ckpt_drop_kernel(rib->ckpt, number);
}

void
mirror_slot(struct rib *rib, uint32_t slot, const struct nh_list *hops)
{
	/* The number of a class is valid in this process only, so store its MTU. */
	if (mirror_is_on(rib))
		ckpt_put_slot(rib->ckpt, slot, hops,
			      fib_class_mtu(rib->fib, hops->v[0].mtu_class), rib->stacks.v);
}

void
mirror_slot_gone(struct rib *rib, uint32_t slot)
{
	if (mirror_is_on(rib))
		ckpt_drop_slot(rib->ckpt, slot);
}

void
mirror_zebra(struct rib *rib, uint32_t nl_pid, uint32_t held_until_s)
{
	if (mirror_is_on(rib))
		ckpt_zebra(rib->ckpt, nl_pid, held_until_s);
}

void
mirror_alive(struct rib *rib)
{
	if (rib->ckpt != NULL)
		ckpt_alive(rib->ckpt, boottime_ms());
}
