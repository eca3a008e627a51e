/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the kernel says about ourselves: own addresses, and the prefixes that follow. [rib].
 *
 * An own address is a host route to us. Its subnet, while the interface is up, is on link,
 * and (IPv4, up to /30) has two broadcast addresses that are never forwarded to. When the
 * interface goes down the subnet is withdrawn and not merely dead, so that a route which
 * zebra learned for it by another way takes over. Own addresses stay: the kernel knows best
 * what it answers. Link-local subnets exist once a link and are in no table. All of this is
 * of the table that the interface's addresses are in: of its VRF, or main.
 *
 * The work is by the subnets of one interface, never by routes of zebra, and each step finds
 * what it needs by hash: thousands of addresses on a port that fails cost some milliseconds.
 */
#include <stdlib.h>

#include "rib/rib_impl.h"
#include "rib/route.h"

struct own_subnet {
	struct prefix prefix; /* masked; len 0 and family 0: entry is free */
	uint32_t ifindex;
	uint32_t table;
	uint32_t refs; /* own addresses in it */
};

struct own {
	uint32_t subnet; /* number; 0: entry is free */
	struct ipaddr addr;
};

/* --- the two tables: subnets by interface, addresses in them; numbers from 1 ------------ */

static uint64_t
hash_of(uint32_t table, const struct prefix *p)
{
	return prefix_hash(p, table);
}

static struct prefix
host_prefix(uint8_t family, const struct ipaddr *addr)
{
	return (struct prefix){
		.addr = *addr, .family = family, .len = (uint8_t)family_bits(family)};
}

static bool
is_linklocal(const struct own_subnet *s)
{
	return s->prefix.family == 6 && ipaddr_is_linklocal6(&s->prefix.addr);
}

/*
 * Addresses of a subnet that are no host's. IPv4: the all-zeros (0) and all-ones (1) host.
 * IPv6: the subnet-router anycast address (0), which is ours (RFC 4291, 2.6.1), but not on a
 * link of two (RFC 6164).
 */
static bool
special_of(const struct own_subnet *s, unsigned int which, struct prefix *out)
{
	const struct prefix *p = &s->prefix;
	uint32_t host;
	struct ipaddr addr;

	if (p->family == 6) {
		*out = host_prefix(6, &p->addr);
		return which == 0 && p->len <= 126 && !is_linklocal(s);
	}
	if (p->len > 30)
		return false;
	host = p->len == 0 ? 0xffffffffu : (1u << (32 - p->len)) - 1;
	addr = ipaddr_from_v4(ipaddr_v4(&p->addr) | (which == 0 ? 0 : host));
	*out = host_prefix(4, &addr);
	return true;
}

static uint32_t
subnet_find(const struct rib *rib, uint32_t ifindex, uint32_t table, const struct prefix *p)
{
	uint32_t i = hidx_first(&rib->subnet_by_prefix, hash_of(table, p));

	while (i != 0 &&
	       !(rib->subnet[i].ifindex == ifindex && rib->subnet[i].table == table &&
		 prefix_equal(&rib->subnet[i].prefix, p)))
		i = hidx_next(&rib->subnet_by_prefix, i);
	return i;
}

static uint32_t
own_find(const struct rib *rib, uint32_t subnet, const struct ipaddr *addr)
{
	struct prefix p = host_prefix(rib->subnet[subnet].prefix.family, addr);
	uint32_t i = hidx_first(&rib->own_by_addr, hash_of(rib->subnet[subnet].table, &p));

	while (i != 0 &&
	       !(rib->own[i].subnet == subnet && ipaddr_equal(&rib->own[i].addr, addr)))
		i = hidx_next(&rib->own_by_addr, i);
	return i;
}

static uint32_t
subnet_get(struct rib *rib, uint32_t ifindex, uint32_t table, const struct prefix *p)
{
	uint32_t i = subnet_find(rib, ifindex, table, p);
	struct prefix special;

	if (i != 0)
		return i;
	i = number_get(&rib->subnet_unused, &rib->subnet_high);
	rib->subnet = table_grow(rib->subnet, &rib->subnet_cap, i, sizeof(*rib->subnet));
	rib->subnet[i] =
		(struct own_subnet){.prefix = *p, .ifindex = ifindex, .table = table};
	hidx_add(&rib->subnet_by_prefix, hash_of(table, p), i);
	for (unsigned int which = 0; which < 2; which++)
		if (special_of(&rib->subnet[i], which, &special))
			hidx_add(&rib->subnet_by_special[which], hash_of(table, &special),
				 i);
	return i;
}

static void
subnet_put(struct rib *rib, uint32_t i)
{
	struct own_subnet *s = &rib->subnet[i];
	struct prefix special;

	if (--s->refs > 0)
		return;
	hidx_del(&rib->subnet_by_prefix, i);
	for (unsigned int which = 0; which < 2; which++)
		if (special_of(s, which, &special))
			hidx_del(&rib->subnet_by_special[which], i);
	*s = (struct own_subnet){0};
	vec32_push(&rib->subnet_unused, i);
}

/* --- what follows from them --------------------------------------------------------------- */

static bool
on_link_now(const struct rib *rib, const struct own_subnet *s)
{
	const struct link *link = rib_link_find(rib, s->ifindex);

	return !is_linklocal(s) && link != NULL && link->known && link->up;
}

static bool
is_own_address(const struct rib *rib, uint32_t table, const struct prefix *p)
{
	if (p->len != family_bits(p->family))
		return false;
	for (uint32_t i = hidx_first(&rib->own_by_addr, hash_of(table, p)); i != 0;
	     i = hidx_next(&rib->own_by_addr, i)) {
		const struct own_subnet *s = &rib->subnet[rib->own[i].subnet];

		if (s->prefix.family == p->family && s->table == table &&
		    ipaddr_equal(&rib->own[i].addr, &p->addr))
			return true;
	}
	return false;
}

/* Of two interfaces in one subnet the older: the same one each time. 0: none. */
static uint32_t
connected_ifindex(const struct rib *rib, uint32_t table, const struct prefix *p)
{
	uint32_t ifindex = 0;

	for (uint32_t i = hidx_first(&rib->subnet_by_prefix, hash_of(table, p)); i != 0;
	     i = hidx_next(&rib->subnet_by_prefix, i)) {
		const struct own_subnet *s = &rib->subnet[i];

		if (s->table == table && prefix_equal(&s->prefix, p) &&
		    on_link_now(rib, s) && (ifindex == 0 || s->ifindex < ifindex))
			ifindex = s->ifindex;
	}
	return ifindex;
}

static bool
is_special(const struct rib *rib, uint32_t table, const struct prefix *p)
{
	struct prefix special;

	for (unsigned int which = 0; which < 2; which++) {
		const struct hidx *by = &rib->subnet_by_special[which];

		for (uint32_t i = hidx_first(by, hash_of(table, p)); i != 0;
		     i = hidx_next(by, i))
			if (rib->subnet[i].table == table &&
			    special_of(&rib->subnet[i], which, &special) &&
			    prefix_equal(&special, p) && on_link_now(rib, &rib->subnet[i]))
				return true;
	}
	return false;
}

/* The slot that the kernel's side gives to `p` in a table; 0 when it has no say. */
static uint32_t
kernel_slot(struct rib *rib, uint32_t table, const struct prefix *p)
{
	struct ways *ways = &rib->scratch;
	uint32_t ifindex;
	struct way *w;

	if (is_own_address(rib, table, p))
		return slot_for_kind(rib, PATH_LOCAL);
	ifindex = connected_ifindex(rib, table, p);
	if (ifindex == 0 && is_special(rib, table, p))
		return slot_for_kind(rib, p->family == 4 ? PATH_BCAST : PATH_LOCAL);
	if (ifindex == 0)
		return 0;
	ways_clear(ways);
	w = ways_push(ways);
	*w = (struct way){.ifindex = ifindex,
			  .weight = 1,
			  .vrfs_own = rib_link_find(rib, ifindex)->vrf != 0};
	return slot_for_ways(rib, ways, 0);
}

static void
reconsider(struct rib *rib, uint32_t table, const struct prefix *p)
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
reconsider_subnet(struct rib *rib, const struct own_subnet *s)
{
	struct own_subnet copy = *s; /* it may be gone already */
	struct prefix p;

	reconsider(rib, copy.table, &copy.prefix);
	for (unsigned int which = 0; which < 2; which++)
		if (special_of(&copy, which, &p))
			reconsider(rib, copy.table, &p);
}

static void
own_remove(struct rib *rib, uint32_t i)
{
	struct own o = rib->own[i];
	struct own_subnet s = rib->subnet[o.subnet];
	struct prefix host = host_prefix(s.prefix.family, &o.addr);

	hidx_del(&rib->own_by_addr, i);
	rib->own[i].subnet = 0;
	vec32_push(&rib->own_unused, i);
	subnet_put(rib, o.subnet);
	reconsider(rib, s.table, &host);
	if (s.refs == 1)
		reconsider_subnet(rib, &s);
}

static void
own_add(struct rib *rib, uint32_t subnet, const struct ipaddr *addr)
{
	struct prefix host = host_prefix(rib->subnet[subnet].prefix.family, addr);
	uint32_t i = number_get(&rib->own_unused, &rib->own_high);

	rib->own = table_grow(rib->own, &rib->own_cap, i, sizeof(*rib->own));
	rib->own[i] = (struct own){.subnet = subnet, .addr = *addr};
	hidx_add(&rib->own_by_addr, hash_of(rib->subnet[subnet].table, &host), i);
	reconsider(rib, rib->subnet[subnet].table, &host);
	if (rib->subnet[subnet].refs++ == 0)
		reconsider_subnet(rib, &rib->subnet[subnet]);
}

void
rib_addr_event(struct rib *rib, const struct msg_addr *m)
{
	uint32_t table = m->table == 0 ? RIB_TABLE_MAIN : m->table;
	struct prefix p = m->subnet;
	uint32_t subnet, own;

	prefix_mask(&p);
	subnet = m->gone ? subnet_find(rib, m->ifindex, table, &p)
			 : subnet_get(rib, m->ifindex, table, &p);
	own = subnet == 0 ? 0 : own_find(rib, subnet, &m->addr);
	if ((own == 0) == m->gone)
		return; /* said before */
	if (m->gone)
		own_remove(rib, own);
	else
		own_add(rib, subnet, &m->addr);
	legs_float(rib);
}

void
own_link_changed(struct rib *rib, uint32_t ifindex, bool gone)
{
	/* The addresses went with the interface, whether that is said or not. */
	for (uint32_t i = 1; gone && i <= rib->own_high; i++)
		if (rib->own[i].subnet != 0 &&
		    rib->subnet[rib->own[i].subnet].ifindex == ifindex)
			own_remove(rib, i);
	for (uint32_t i = 1; i <= rib->subnet_high; i++)
		if (rib->subnet[i].refs > 0 && rib->subnet[i].ifindex == ifindex)
			reconsider_subnet(rib, &rib->subnet[i]);
	if (gone)
		legs_float(rib);
}

uint32_t
own_ifindex_of(const struct rib *rib, uint8_t family, const struct ipaddr *addr)
{
	uint32_t ifindex = 0;
	int best = -1;

	for (uint32_t i = 1; i <= rib->subnet_high; i++) {
		const struct own_subnet *s = &rib->subnet[i];

		/* A next hop has no table: what names no interface is taken to mean main. */
		if (s->refs == 0 || s->table != RIB_TABLE_MAIN ||
		    s->prefix.family != family || s->prefix.len < best ||
		    !prefix_covers(&s->prefix, addr))
			continue;
		if (s->prefix.len > best)
			ifindex = s->ifindex;
		else if (ifindex != s->ifindex)
			ifindex = 0; /* two links: nobody can say which */
		best = s->prefix.len;
	}
	return ifindex;
}

void
own_free(struct rib *rib)
{
	free(rib->own);
	free(rib->subnet);
	vec32_free(&rib->own_unused);
	vec32_free(&rib->subnet_unused);
	hidx_free(&rib->own_by_addr);
	hidx_free(&rib->subnet_by_prefix);
	for (unsigned int which = 0; which < 2; which++)
		hidx_free(&rib->subnet_by_special[which]);
}
