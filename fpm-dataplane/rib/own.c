/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Own addresses and their subnets: two tables, searched by address, by prefix and by the
 * special addresses of a subnet. [rib]. kernel.c makes routes of them. This file does not
 * use struct rib.
 */
#include "rib/own.h"

#include <stdlib.h>

#include "rib/index.h"
#include "rib/link.h"
#include "rib/routes.h"

static uint64_t
own_hash(uint32_t table, const struct prefix *p)
{
	return prefix_hash(p, table);
}

struct prefix
own_host_prefix(uint8_t family, const struct ipaddr *addr)
{
	return (struct prefix){
		.addr = *addr, .family = family, .len = (uint8_t)family_bits(family)};
}

static bool
subnet_is_linklocal(const struct own_subnet *s)
{
	return s->prefix.family == 6 && ipaddr_is_linklocal6(&s->prefix.addr);
}

bool
subnet_special(const struct own_subnet *s, unsigned int which, struct prefix *out)
{
	const struct prefix *p = &s->prefix;
	uint32_t host;
	struct ipaddr addr;

	if (p->family == 6) {
		*out = own_host_prefix(6, &p->addr);
		return which == 0 && p->len <= 126 && !subnet_is_linklocal(s);
	}
	if (p->len > 30)
		return false;
	host = p->len == 0 ? 0xffffffffu : (1u << (32 - p->len)) - 1;
	addr = ipaddr_from_v4(ipaddr_v4(&p->addr) | (which == 0 ? 0 : host));
	*out = own_host_prefix(4, &addr);
	return true;
}

uint32_t
own_subnet_find(const struct rib_own *own, uint32_t ifindex, uint32_t table,
		const struct prefix *p)
{
	uint32_t i = hidx_first(&own->subnet_by_prefix, own_hash(table, p));

	while (i != 0 &&
	       !(own->subnet[i].ifindex == ifindex && own->subnet[i].table == table &&
		 prefix_equal(&own->subnet[i].prefix, p)))
		i = hidx_next(&own->subnet_by_prefix, i);
	return i;
}

uint32_t
own_find(const struct rib_own *own, uint32_t subnet, const struct ipaddr *addr)
{
	struct prefix p = own_host_prefix(own->subnet[subnet].prefix.family, addr);
	uint32_t i = hidx_first(&own->by_addr, own_hash(own->subnet[subnet].table, &p));

	while (i != 0 &&
	       !(own->v[i].subnet == subnet && ipaddr_equal(&own->v[i].addr, addr)))
		i = hidx_next(&own->by_addr, i);
	return i;
}

uint32_t
own_subnet_get(struct rib_own *own, uint32_t ifindex, uint32_t table,
	       const struct prefix *p)
{
	uint32_t i = own_subnet_find(own, ifindex, table, p);
	struct prefix special;

	if (i != 0)
		return i;
	i = number_get(&own->subnet_unused, &own->subnet_high);
	own->subnet = table_grow(own->subnet, &own->subnet_cap, i, sizeof(*own->subnet));
	own->subnet[i] =
		(struct own_subnet){.prefix = *p, .ifindex = ifindex, .table = table};
	hidx_add(&own->subnet_by_prefix, own_hash(table, p), i);
	for (unsigned int which = 0; which < 2; which++)
		if (subnet_special(&own->subnet[i], which, &special))
			hidx_add(&own->subnet_by_special[which], own_hash(table, &special),
				 i);
	return i;
}

static void
own_subnet_put(struct rib_own *own, uint32_t i)
{
	struct own_subnet *s = &own->subnet[i];
	struct prefix special;

	if (--s->refs > 0)
		return;
	hidx_del(&own->subnet_by_prefix, i);
	for (unsigned int which = 0; which < 2; which++)
		if (subnet_special(s, which, &special))
			hidx_del(&own->subnet_by_special[which], i);
	*s = (struct own_subnet){0};
	vec32_push(&own->subnet_unused, i);
}

uint32_t
own_insert(struct rib_own *own, uint32_t subnet, const struct ipaddr *addr)
{
	struct prefix host = own_host_prefix(own->subnet[subnet].prefix.family, addr);
	uint32_t i = number_get(&own->unused, &own->high);

	own->v = table_grow(own->v, &own->cap, i, sizeof(*own->v));
	own->v[i] = (struct own){.subnet = subnet, .addr = *addr};
	hidx_add(&own->by_addr, own_hash(own->subnet[subnet].table, &host), i);
	return i;
}

void
own_delete(struct rib_own *own, uint32_t i)
{
	uint32_t subnet = own->v[i].subnet;

	hidx_del(&own->by_addr, i);
	own->v[i].subnet = 0;
	vec32_push(&own->unused, i);
	own_subnet_put(own, subnet);
}

static bool
subnet_is_on_link(const struct rib_links *links, const struct own_subnet *s)
{
	const struct link *link = rib_link_find(links, s->ifindex);

	return !subnet_is_linklocal(s) && link != NULL && link->known && link->up;
}

bool
own_is_address(const struct rib_own *own, uint32_t table, const struct prefix *p)
{
	if (p->len != family_bits(p->family))
		return false;
	for (uint32_t i = hidx_first(&own->by_addr, own_hash(table, p)); i != 0;
	     i = hidx_next(&own->by_addr, i)) {
		const struct own_subnet *s = &own->subnet[own->v[i].subnet];

		if (s->prefix.family == p->family && s->table == table &&
		    ipaddr_equal(&own->v[i].addr, &p->addr))
			return true;
	}
	return false;
}

uint32_t
own_connected_ifindex(const struct rib_own *own, const struct rib_links *links,
		      uint32_t table, const struct prefix *p)
{
	uint32_t ifindex = 0;

	for (uint32_t i = hidx_first(&own->subnet_by_prefix, own_hash(table, p)); i != 0;
	     i = hidx_next(&own->subnet_by_prefix, i)) {
		const struct own_subnet *s = &own->subnet[i];

		if (s->table == table && prefix_equal(&s->prefix, p) &&
		    subnet_is_on_link(links, s) && (ifindex == 0 || s->ifindex < ifindex))
			ifindex = s->ifindex;
	}
	return ifindex;
}

bool
own_is_special(const struct rib_own *own, const struct rib_links *links, uint32_t table,
	       const struct prefix *p)
{
	struct prefix special;

	for (unsigned int which = 0; which < 2; which++) {
		const struct hidx *by = &own->subnet_by_special[which];

		for (uint32_t i = hidx_first(by, own_hash(table, p)); i != 0;
		     i = hidx_next(by, i))
			if (own->subnet[i].table == table &&
			    subnet_special(&own->subnet[i], which, &special) &&
			    prefix_equal(&special, p) &&
			    subnet_is_on_link(links, &own->subnet[i]))
				return true;
	}
	return false;
}

uint32_t
own_ifindex_of(const struct rib_own *own, uint8_t family, const struct ipaddr *addr)
{
	uint32_t ifindex = 0;
	int best = -1;

	for (uint32_t i = 1; i <= own->subnet_high; i++) {
		const struct own_subnet *s = &own->subnet[i];

		/*
		 * A next hop has no table. One without an interface is taken to be in main.
		 */
		if (s->refs == 0 || s->table != RIB_TABLE_MAIN ||
		    s->prefix.family != family || s->prefix.len < best ||
		    !prefix_covers(&s->prefix, addr))
			continue;
		if (s->prefix.len > best)
			ifindex = s->ifindex;
		else if (ifindex != s->ifindex)
			ifindex = 0; /* two links: it is ambiguous */
		best = s->prefix.len;
	}
	return ifindex;
}

void
own_free(struct rib_own *own)
{
	free(own->v);
	free(own->subnet);
	vec32_free(&own->unused);
	vec32_free(&own->subnet_unused);
	hidx_free(&own->by_addr);
	hidx_free(&own->subnet_by_prefix);
	for (unsigned int which = 0; which < 2; which++)
		hidx_free(&own->subnet_by_special[which]);
}
