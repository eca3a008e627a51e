/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Apply events of the kernel: links, own addresses, and the prefixes that result from them.
 * [rib]
 *
 * An own address is a host route to the kernel. While its interface is up, its subnet is on
 * link and has special addresses (own.h): two broadcast addresses in IPv4 (prefix length up
 * to 30), which are never forwarded to, and the subnet-router anycast address in IPv6. When
 * the interface goes down, the subnet is withdrawn, so that a route for it that zebra
 * learned from another router takes over. Own addresses stay, because the kernel decides
 * what it answers. Link-local subnets exist on each link and are in no table. All of this
 * belongs to the table of the interface's addresses: that of its VRF, or main.
 *
 * The work depends on the number of subnets of an interface, not on the number of routes of
 * zebra. Each step finds its records by hash. Thousands of addresses on a failing port cost
 * some milliseconds.
 */
#include "rib/kernel.h"

#include <string.h>

#include "base/msg.h"
#include "rib/content.h"
#include "rib/leg.h"
#include "rib/link.h"
#include "rib/own.h"
#include "rib/rib_impl.h"
#include "rib/route.h"
#include "rib/routes.h"
#include "rib/slot.h"
#include "rib/nh_list.h"

/* Return the slot that the kernel's state gives to `p` in a table; 0: none. */
static uint32_t
kernel_slot(struct rib *rib, uint32_t table, const struct prefix *p)
{
	struct nh_list *hops = &rib->scratch;
	uint32_t ifindex;
	struct next_hop *hop;

	if (own_is_address(&rib->own, table, p))
		return slot_for_kind(rib, PATH_LOCAL);
	ifindex = own_connected_ifindex(&rib->own, &rib->links, table, p);
	if (ifindex == 0 && own_is_special(&rib->own, &rib->links, table, p))
		return slot_for_kind(rib, p->family == 4 ? PATH_BCAST : PATH_LOCAL);
	if (ifindex == 0)
		return 0;
	nh_list_clear(hops);
	hop = nh_list_push(hops);
	*hop = (struct next_hop){.ifindex = ifindex,
				 .weight = 1,
				 .vrf_subnet =
					 rib_link_find(&rib->links, ifindex)->vrf != 0};
	return slot_for_hops(rib, hops, 0);
}

static void
kernel_reconsider(struct rib *rib, uint32_t table, const struct prefix *p)
{
	struct routes *of = tables_routes(&rib->tables, table);
	uint64_t hash = routes_hash(of, table, p);
	struct route *r = routes_find(of, table, p, hash);
	uint32_t slot = kernel_slot(rib, table, p), was, old;

	if (r == NULL) {
		if (slot == 0)
			return;
		r = routes_insert(of, table, p, hash);
		if (r == NULL) {
			rib->count.route_nomem++;
			return;
		}
		rib->tables.n_main[p->family == 6] += table == RIB_TABLE_MAIN;
	}
	if (r->kslot == slot)
		return;
	if (slot != 0)
		slot_ref(rib, slot);
	was = route_effective(r);
	old = r->kslot;
	r->kslot = slot;
	route_settle(rib, r, was);
	if (old != 0)
		slot_unref(rib, old);
}

static void
kernel_reconsider_subnet(struct rib *rib, const struct own_subnet *s)
{
	struct own_subnet copy = *s; /* own_delete() may have freed it */
	struct prefix p;

	kernel_reconsider(rib, copy.table, &copy.prefix);
	for (unsigned int which = 0; which < 2; which++)
		if (subnet_special(&copy, which, &p))
			kernel_reconsider(rib, copy.table, &p);
}

static void
own_remove(struct rib *rib, uint32_t i)
{
	struct own o = rib->own.v[i];
	struct own_subnet s = rib->own.subnet[o.subnet];
	struct prefix host = own_host_prefix(s.prefix.family, &o.addr);

	own_delete(&rib->own, i);
	kernel_reconsider(rib, s.table, &host);
	if (s.refs == 1)
		kernel_reconsider_subnet(rib, &s);
}

static void
own_add(struct rib *rib, uint32_t subnet, const struct ipaddr *addr)
{
	struct own_subnet *s = &rib->own.subnet[subnet];
	struct prefix host = own_host_prefix(s->prefix.family, addr);

	own_insert(&rib->own, subnet, addr);
	kernel_reconsider(rib, s->table, &host);
	if (s->refs++ == 0)
		kernel_reconsider_subnet(rib, s);
}

void
rib_addr_event(struct rib *rib, const struct msg_addr *m)
{
	uint32_t table = m->table == 0 ? RIB_TABLE_MAIN : m->table;
	struct prefix p = m->subnet;
	uint32_t subnet, own;

	prefix_mask(&p);
	subnet = m->gone ? own_subnet_find(&rib->own, m->ifindex, table, &p)
			 : own_subnet_get(&rib->own, m->ifindex, table, &p);
	own = subnet == 0 ? 0 : own_find(&rib->own, subnet, &m->addr);
	if ((own == 0) == m->gone)
		return; /* repeated event */
	if (m->gone)
		own_remove(rib, own);
	else
		own_add(rib, subnet, &m->addr);
	legs_rebind_floating(rib);
}

static void
own_link_changed(struct rib *rib, uint32_t ifindex, bool gone)
{
	const struct rib_own *own = &rib->own;

	/*
	 * The kernel removes the addresses with the interface, with or without an event for
	 * each.
	 */
	for (uint32_t i = 1; gone && i <= own->high; i++)
		if (own->v[i].subnet != 0 &&
		    own->subnet[own->v[i].subnet].ifindex == ifindex)
			own_remove(rib, i);
	for (uint32_t i = 1; i <= own->subnet_high; i++)
		if (own->subnet[i].refs > 0 && own->subnet[i].ifindex == ifindex)
			kernel_reconsider_subnet(rib, &own->subnet[i]);
	if (gone)
		legs_rebind_floating(rib);
}

void
rib_link_event(struct rib *rib, const struct msg_link *m)
{
	struct link *link = m->gone ? rib_link_find(&rib->links, m->ifindex)
				    : rib_link_get(&rib->links, m->ifindex);
	uint16_t ifidx = m->gone ? 0 : m->ifidx, vrf = m->gone ? 0 : m->vrf;
	struct leg *leg;
	bool up = m->up && !m->gone;

	if (link == NULL) {
		own_link_changed(rib, m->ifindex, true);
		return;
	}
	if (!m->gone)
		memcpy(link->name, m->name, sizeof(link->name));
	link->name[sizeof(link->name) - 1] = '\0';
	if (link->known == !m->gone && link->up == up && link->ifidx == ifidx &&
	    link->vrf == vrf)
		return;
	link->vrf = vrf;
	link->known = !m->gone;
	link->up = up;
	if (link->ifidx != ifidx) {
		link->ifidx = ifidx;
		legs_renew_adjs(rib, link);
	}
	cds_list_for_each_entry (leg, &link->legs, on_link)
		slot_dirty(rib, leg->slot, SLOT_PATHS);
	rib->words.due = true;
	own_link_changed(rib, m->ifindex, m->gone);
	/* The last leg may be gone, and the link with it. */
	link = rib_link_find(&rib->links, m->ifindex);
	if (link != NULL)
		rib_link_maybe_free(&rib->links, link);
}
