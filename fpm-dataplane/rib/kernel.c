/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the kernel says about ourselves: own addresses, and the prefixes that follow. [rib].
 *
 * An own address is a host route to us. Its subnet, while the interface is up, is on link,
 * and (IPv4, up to /30) has two broadcast addresses that are never forwarded to. When the
 * interface goes down the subnet is withdrawn and not merely dead, so that a route which
 * zebra learned for it by another way takes over. Own addresses stay: the kernel knows best
 * what it answers. Link-local subnets exist once a link and are in no table.
 *
 * The work is by the addresses of one interface, never by routes of zebra.
 */
#include <stdlib.h>

#include "rib/rib_impl.h"

static bool
on_link_now(const struct rib *rib, const struct own *o)
{
	const struct link *link = rib_link_find(rib, o->ifindex);

	if (o->subnet.family == 6 && ipaddr_is_linklocal6(&o->subnet.addr))
		return false;
	return link != NULL && link->known && link->up;
}

static struct prefix
host_prefix(uint8_t family, const struct ipaddr *addr)
{
	return (struct prefix){
		.addr = *addr, .family = family, .len = (uint8_t)family_bits(family)};
}

/* The all-zeros (0) or all-ones (1) host of an IPv4 subnet that has them. */
static bool
broadcast_of(const struct own *o, unsigned int which, struct prefix *out)
{
	const struct prefix *s = &o->subnet;
	uint32_t host;
	struct ipaddr addr;

	if (s->family != 4 || s->len > 30)
		return false;
	host = s->len == 0 ? 0xffffffffu : (1u << (32 - s->len)) - 1;
	addr = ipaddr_from_v4(ipaddr_v4(&s->addr) | (which == 0 ? 0 : host));
	*out = host_prefix(4, &addr);
	return true;
}

/* The slot that the kernel's side gives to `p`; 0 when it has no say. */
static uint32_t
kernel_slot(struct rib *rib, const struct prefix *p)
{
	uint32_t ifindex = 0;
	bool broadcast = false;
	struct ways *ways = &rib->scratch;
	struct way *w;

	for (uint32_t i = 0; i < rib->n_own; i++) {
		const struct own *o = &rib->own[i];
		struct prefix b, host = host_prefix(o->subnet.family, &o->addr);

		if (prefix_equal(&host, p))
			return slot_for_kind(rib, PATH_LOCAL);
		if (!on_link_now(rib, o))
			continue;
		/* Of two interfaces in one subnet the older: the same one each time. */
		if (prefix_equal(&o->subnet, p) && (ifindex == 0 || o->ifindex < ifindex))
			ifindex = o->ifindex;
		for (unsigned int which = 0; which < 2; which++)
			if (broadcast_of(o, which, &b) && prefix_equal(&b, p))
				broadcast = true;
	}
	if (ifindex == 0)
		return broadcast ? slot_for_kind(rib, PATH_BCAST) : 0;
	ways_clear(ways);
	w = ways_push(ways);
	*w = (struct way){.ifindex = ifindex, .weight = 1};
	return slot_for_ways(rib, ways, 0);
}

static void
reconsider(struct rib *rib, const struct prefix *p)
{
	uint64_t hash = routes_hash(&rib->main, RIB_TABLE_MAIN, p);
	struct route *r = routes_find(&rib->main, RIB_TABLE_MAIN, p, hash);
	uint32_t slot = kernel_slot(rib, p), was, old;

	if (r == NULL) {
		if (slot == 0)
			return;
		r = routes_insert(&rib->main, RIB_TABLE_MAIN, p, hash);
		if (r == NULL) {
			rib->count.route_nomem++;
			return;
		}
		rib->n_main[p->family == 6]++;
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
reconsider_all_of(struct rib *rib, const struct own *o)
{
	struct prefix p = host_prefix(o->subnet.family, &o->addr);

	reconsider(rib, &p);
	reconsider(rib, &o->subnet);
	for (unsigned int which = 0; which < 2; which++)
		if (broadcast_of(o, which, &p))
			reconsider(rib, &p);
}

void
rib_addr_event(struct rib *rib, const struct msg_addr *m)
{
	struct own o = {.ifindex = m->ifindex, .subnet = m->subnet, .addr = m->addr};
	uint32_t i = 0;

	prefix_mask(&o.subnet);
	while (i < rib->n_own && !(rib->own[i].ifindex == o.ifindex &&
				   prefix_equal(&rib->own[i].subnet, &o.subnet) &&
				   ipaddr_equal(&rib->own[i].addr, &o.addr)))
		i++;
	if ((i == rib->n_own) == m->gone)
		return; /* said before */
	if (m->gone) {
		rib->own[i] = rib->own[--rib->n_own];
	} else {
		if (rib->n_own == rib->cap_own) {
			rib->cap_own = rib->cap_own == 0 ? 16 : rib->cap_own * 2;
			rib->own = must(realloc(rib->own, rib->cap_own * sizeof(o)));
		}
		rib->own[rib->n_own++] = o;
	}
	reconsider_all_of(rib, &o);
	legs_float(rib);
}

void
own_link_changed(struct rib *rib, uint32_t ifindex, bool gone)
{
	for (uint32_t i = 0; i < rib->n_own;) {
		struct own o = rib->own[i];

		if (o.ifindex != ifindex) {
			i++;
			continue;
		}
		/* The addresses went with the interface, whether that is said or not. */
		if (gone)
			rib->own[i] = rib->own[--rib->n_own];
		else
			i++;
		reconsider_all_of(rib, &o);
	}
	if (gone)
		legs_float(rib);
}

uint32_t
own_ifindex_of(const struct rib *rib, uint8_t family, const struct ipaddr *addr)
{
	uint32_t ifindex = 0;
	int best = -1;

	for (uint32_t i = 0; i < rib->n_own; i++) {
		const struct own *o = &rib->own[i];

		if (o->subnet.family != family || o->subnet.len < best ||
		    !prefix_covers(&o->subnet, addr))
			continue;
		if (o->subnet.len > best)
			ifindex = o->ifindex;
		else if (ifindex != o->ifindex)
			ifindex = 0; /* two links: nobody can say which */
		best = o->subnet.len;
	}
	return ifindex;
}

void
own_free(struct rib *rib)
{
	free(rib->own);
}
