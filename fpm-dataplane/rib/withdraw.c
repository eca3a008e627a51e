/* SPDX-License-Identifier: BSD-3-Clause */
/* withdraw: remove a route of zebra. [rib] */
#include "rib/withdraw.h"

#include "rib/early.h"
#include "rib/impl.h"
#include "rib/kernel.h"
#include "rib/mirror.h"
#include "rib/route.h"
#include "rib/slot.h"
#include "rib/table_count.h"

void
zebra_withdraw(struct rib *rib, struct route *r)
{
	uint32_t was = route_effective(r), old = r->zslot;

	mirror_route_gone(rib, r);
	r->zslot = 0;
	kernel_choose(rib, r);
	early_forget(rib, r);
	table_count_remove(rib, r);
	route_settle(rib, r, was);
	slot_unref(rib, old);
}
