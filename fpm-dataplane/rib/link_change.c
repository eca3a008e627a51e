/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Apply a new, changed or deleted link of the kernel to the legs over it, its connected
 * routes and the rules that name it. [rib]
 */
#include "rib/link_change.h"

#include <string.h>

#include "base/msg.h"
#include "rib/impl.h"
#include "rib/kernel.h"
#include "rib/kroute.h"
#include "rib/leg.h"
#include "rib/link.h"
#include "rib/route.h"
#include "rib/slot.h"

/* Decide again whether the connected routes of a link count. */
static void
link_routes_changed(struct rib *rib, uint32_t ifindex)
{
	const struct rib_kroutes *k = &rib->kroutes;

	for (uint32_t i = 0; i < k->connected.n; i++)
		if (k->v[k->connected.v[i]].ifindex == ifindex)
			kernel_settle(rib, k->v[k->connected.v[i]].route);
}

/*
 * Follow a link that lost its last IPv4 address, or got its first one. Linux stops to use
 * the next hops by the link (fib_disable_ip()), or uses them again (fib_sync_up()).
 */
static void
link_set_no_ipv4(struct rib *rib, struct link *link, bool no_ipv4)
{
	struct leg *leg;

	if (link->no_ipv4 == no_ipv4)
		return;
	link->no_ipv4 = no_ipv4;
	cds_list_for_each_entry (leg, &link->legs, on_link)
		if (leg->hop.dead) {
			slot_dirty(rib, leg->slot, SLOT_PATHS);
			rib->words.due = true;
		}
}

/* Return true if Linux may mark next hops by the link: they are among several. */
static bool
link_has_marks(const struct link *link)
{
	const struct leg *leg;

	cds_list_for_each_entry (leg, &link->legs, on_link)
		if (leg->slot->kind == SLOT_INLINE && leg->slot->n_legs > 1)
			return true;
	return false;
}

/*
 * Follow the sysctl ignore_routes_with_linkdown of a link. While the link has no carrier,
 * Linux shows its next hops in IPv4 routes as dead if the sysctl is set.
 */
static bool
link_set_ignore(struct rib *rib, struct link *link, const struct msg_link *m)
{
	bool changed[2];

	for (unsigned int v = 0; v < 2; v++) {
		changed[v] = link->ignore_linkdown[v] != m->ignore_linkdown[v];
		link->ignore_linkdown[v] = m->ignore_linkdown[v];
	}
	if (changed[0] && link->known && !m->gone && link_has_marks(link))
		kernel_read_again(rib);
	return changed[0] || changed[1];
}

void
rib_link_event(struct rib *rib, const struct msg_link *m)
{
	struct link *link = m->gone ? rib_link_find(&rib->links, m->ifindex)
				    : rib_link_get(&rib->links, m->ifindex);
	uint16_t ifidx = m->gone ? 0 : m->ifidx, vrf = m->gone ? 0 : m->vrf;
	struct leg *leg;
	bool up = m->up && !m->gone;
	bool changed;

	if (link == NULL)
		return;
	changed = link_set_ignore(rib, link, m);
	changed |= link->ipv6_off != m->ipv6_off;
	link->ipv6_off = m->ipv6_off;
	link_set_no_ipv4(rib, link, m->no_ipv4);
	if (!m->gone && strncmp(link->name, m->name, sizeof(link->name)) != 0)
		rib->rules.due = true; /* rules name interfaces */
	if (!m->gone)
		memcpy(link->name, m->name, sizeof(link->name));
	link->name[sizeof(link->name) - 1] = '\0';
	if (link->known == !m->gone && link->up == up && link->ifidx == ifidx &&
	    link->vrf == vrf && !changed)
		return;
	link->vrf = vrf;
	link->known = !m->gone;
	rib->rules.due = true; /* rules name interfaces */
	link->up = up;
	if (changed || link->ignore_linkdown[0])
		kroutes_review(&rib->kroutes);
	if (link->ifidx != ifidx) {
		link->ifidx = ifidx;
		link->tunnel = !m->gone && m->tunnel;
		link->gre = link->tunnel && m->gre;
		legs_renew_adjs(rib, link);
	}
	cds_list_for_each_entry (leg, &link->legs, on_link)
		slot_dirty(rib, leg->slot, SLOT_PATHS);
	rib->words.due = true;
	link_routes_changed(rib, m->ifindex);
	/* The last leg, and with it the link, may have been freed. */
	link = rib_link_find(&rib->links, m->ifindex);
	if (link != NULL)
		rib_link_maybe_free(&rib->links, link);
}

void
links_set_through_kernel(struct rib *rib, bool on)
{
	struct leg *leg;

	if (rib->conf.through_kernel == on)
		return;
	rib->conf.through_kernel = on;
	for (uint32_t i = 1; i <= rib->links.high; i++) {
		struct link *link = rib->links.v[i];
		bool all;

		if (link == NULL)
			continue;
		all = link->ifidx == 0 || link->tunnel;
		cds_list_for_each_entry (leg, &link->legs, on_link)
			if (all || leg->hop.encap == HOP_SEG6 ||
			    leg->hop.encap == HOP_LWTUNNEL)
				slot_dirty(rib, leg->slot, SLOT_PATHS);
	}
	rib->words.due = true;
}
