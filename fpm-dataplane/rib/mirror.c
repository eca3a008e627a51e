/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keep the checkpoint in step with the tables: one record for each route of zebra and each
 * slot, written by the function that changes the route or slot. [rib]. These functions only
 * write; restore.c reads the checkpoint of the last daemon.
 */
#include "rib/mirror.h"

#include "base/clock.h"
#include "rib/checkpoint.h"
#include "rib/rib_impl.h"
#include "rib/routes.h"
#include "rib/nh_list.h"

static bool
mirror_is_on(const struct rib *rib)
{
	return rib->ckpt != NULL && !rib->ckpt->frozen;
}

/*
 * Keys that are not IP routes are in no FIB in any session, so the checkpoint does not have
 * them.
 */
static bool
route_is_mirrored(const struct rib *rib, const struct route *r)
{
	return mirror_is_on(rib) && r->table != FPM_TABLE_NONE;
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
 * Return true for content that only the kernel gives (kernel.c). Each start reads it from
 * the kernel.
 */
static bool
hops_are_kernel(const struct nh_list *hops)
{
	return hops->v[0].kind == PATH_LOCAL || hops->v[0].kind == PATH_BCAST;
}

void
mirror_slot(struct rib *rib, uint32_t slot, const struct nh_list *hops)
{
	uint16_t class = hops->v[0].mtu_class; /* a number of this process: not stored */

	if (mirror_is_on(rib) && !hops_are_kernel(hops))
		ckpt_put_slot(rib->ckpt, slot, hops,
			      class == 0 ? 0
					 : atomic_load_explicit(&rib->fib->mtu_bytes[class],
								memory_order_relaxed));
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
