/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel of a rig: routes and next-hop objects as rtnl sends them. See rib_rig.h. */
#include <stdio.h>

#include "rib_rig.h"

/* --- the kernel's tables -------------------------------------------------------------- */

struct kernel_event *
rig_kernel(struct rig *g, enum kernel_event_kind kind)
{
	struct kernel_event *ev;

	if (g->batch != NULL ||
	    (g->kernel_batch != NULL && g->kernel_batch->n == KERNEL_BATCH_MAX))
		rig_flush_batch(g);
	if (g->kernel_batch == NULL)
		g->kernel_batch = msg_new(MSG_KERNEL_BATCH, sizeof(*g->kernel_batch));
	ev = &g->kernel_batch->ev[g->kernel_batch->n++];
	ev->kind = (uint8_t)kind;
	ev->order = KERNEL_FIRST;
	ev->route.kind = kind == KERNEL_ROUTE_DEL     ? FPM_ROUTE_DEL
			 : kind == KERNEL_NEXTHOP     ? FPM_NEXTHOP
			 : kind == KERNEL_NEXTHOP_DEL ? FPM_NEXTHOP_DEL
						      : FPM_ROUTE;
	ev->route.rtm_type = RTN_UNICAST;
	ev->route.protocol = RTPROT_STATIC;
	ev->route.table = RT_TABLE_MAIN;
	return ev;
}

void
rig_kernel_hop(struct kernel_event *ev, const char *gw, uint32_t ifindex)
{
	struct fpm_event *r = &ev->route;

	r->hops = realloc(r->hops, (r->n_hops + 1u) * sizeof(*r->hops));
	assert_non_null(r->hops);
	rig_set_hop(&r->hops[r->n_hops++], gw, ifindex);
	ev->ifindex = r->n_hops == 1 ? ifindex : 0;
}

struct kernel_event *
rig_kernel_route(struct rig *g, enum kernel_event_kind kind, const char *text,
		 uint32_t metric, const char *gw, uint32_t ifindex)
{
	struct kernel_event *ev = rig_kernel(g, kind);

	ev->route.prefix = rig_prefix(text);
	ev->metric = metric;
	if (ev->route.prefix.family == 6)
		ev->order = KERNEL_LAST;
	if (gw != NULL || ifindex != 0)
		rig_kernel_hop(ev, gw, ifindex);
	return ev;
}

struct kernel_event *
rig_kernel_type(struct rig *g, enum kernel_event_kind kind, const char *text,
		uint32_t metric, uint8_t rtm_type)
{
	struct kernel_event *ev = rig_kernel_route(g, kind, text, metric, NULL, 0);

	ev->route.rtm_type = rtm_type;
	return ev;
}

struct kernel_event *
rig_kernel_by_id(struct rig *g, enum kernel_event_kind kind, const char *text,
		 uint32_t metric, uint32_t nhid)
{
	struct kernel_event *ev = rig_kernel_route(g, kind, text, metric, NULL, 0);

	ev->route.nhid = nhid;
	return ev;
}

void
rig_kernel_nexthop(struct rig *g, uint32_t id, const char *gw, uint32_t ifindex)
{
	struct kernel_event *ev = rig_kernel(g, KERNEL_NEXTHOP);

	ev->route.nhid = id;
	rig_kernel_hop(ev, gw, ifindex);
}

void
rig_kernel_group(struct rig *g, uint32_t id, uint32_t one, uint32_t other)
{
	struct kernel_event *ev = rig_kernel(g, KERNEL_NEXTHOP);

	ev->route.nhid = id;
	ev->route.is_group = true;
	rig_kernel_hop(ev, NULL, 0);
	rig_kernel_hop(ev, NULL, 0);
	ev->route.hops[0].id = one;
	ev->route.hops[1].id = other;
}

void
rig_kernel_nexthop_del(struct rig *g, uint32_t id)
{
	rig_kernel(g, KERNEL_NEXTHOP_DEL)->route.nhid = id;
}

void
rig_kernel_dump(struct rig *g, bool begin, uint8_t family, uint8_t protocol)
{
	struct kernel_event *ev =
		rig_kernel(g, begin ? KERNEL_DUMP_BEGIN : KERNEL_DUMP_END);

	ev->dump = (struct kernel_scope){.family = family, .protocol = protocol};
}

/* --- addresses, and the routes that Linux makes of them ------------------------------- */

#define TYPE_ADDRESS 255u /* type of an entry that is an address; others are RTN_* */

static uint32_t
entry_find(const struct rig *g, const struct rig_entry *want)
{
	uint32_t i = hidx_first(&g->by_prefix, prefix_hash(&want->prefix, want->table));

	for (; i != 0; i = hidx_next(&g->by_prefix, i)) {
		const struct rig_entry *e = &g->entry[i];

		if (e->type == want->type && e->ifindex == want->ifindex &&
		    e->table == want->table && prefix_equal(&e->prefix, &want->prefix))
			break;
	}
	return i;
}

/* Returns true if the entry is new. */
static bool
entry_get(struct rig *g, const struct rig_entry *want)
{
	uint32_t i = entry_find(g, want);

	if (i != 0) {
		g->entry[i].refs++;
		return false;
	}
	i = number_get(&g->entry_unused, &g->entry_high);
	g->entry = table_grow(g->entry, &g->entry_cap, i, sizeof(*g->entry));
	g->entry[i] = *want;
	g->entry[i].refs = 1;
	hidx_add(&g->by_prefix, prefix_hash(&want->prefix, want->table), i);
	return true;
}

/* Returns true if that was the last reference. */
static bool
entry_put(struct rig *g, const struct rig_entry *want)
{
	uint32_t i = entry_find(g, want);

	if (i == 0 || --g->entry[i].refs > 0)
		return false;
	hidx_del(&g->by_prefix, i);
	g->entry[i] = (struct rig_entry){0};
	vec32_push(&g->entry_unused, i);
	return true;
}

/*
 * List the address, then the routes that Linux makes of it. Return the number of entries.
 */
static unsigned int
entries_of_address(struct rig_entry *e, uint32_t table, uint32_t ifindex,
		   const struct ipaddr *addr, const struct prefix *subnet)
{
	struct prefix host = {.addr = *addr, .family = subnet->family};
	struct rig_entry entry = {.table = table, .ifindex = ifindex};
	struct prefix last, masked = *subnet;
	unsigned int n = 0;

	host.len = (uint8_t)family_bits(host.family);
	prefix_mask(&masked);
	entry.prefix = *subnet;
	entry.prefix.addr = *addr;
	entry.type = TYPE_ADDRESS;
	e[n++] = entry;
	entry.prefix = host;
	entry.type = RTN_LOCAL;
	e[n++] = entry;
	if (host.family == 6 || !prefix_equal(&masked, &host)) {
		entry.prefix = masked;
		entry.type = RTN_UNICAST;
		e[n++] = entry;
	}
	last = masked;
	last.len = host.len;
	entry.prefix = last;
	entry.type = RTN_ANYCAST;
	if (host.family == 6 && masked.len <= 126)
		e[n++] = entry;
	if (host.family == 6 || masked.len > 30)
		return n;
	entry.prefix.addr = ipaddr_from_v4(ipaddr_v4(&masked.addr) |
					   (uint32_t)(0xffffffffull >> masked.len));
	entry.type = RTN_BROADCAST;
	e[n++] = entry;
	return n;
}

static void
entry_tell(struct rig *g, const struct rig_entry *e, bool gone)
{
	struct kernel_event *ev = rig_kernel(g, gone ? KERNEL_ROUTE_DEL : KERNEL_ROUTE);

	ev->order = KERNEL_LAST;
	ev->is_local = e->type != RTN_UNICAST && e->table == 0;
	ev->metric = e->type == RTN_UNICAST && e->prefix.family == 6 ? 256 : 0;
	ev->scope = e->prefix.family == 6  ? RT_SCOPE_UNIVERSE
		    : e->type == RTN_LOCAL ? RT_SCOPE_HOST
					   : RT_SCOPE_LINK;
	ev->route.table = e->table == 0 ? RT_TABLE_MAIN : e->table;
	ev->route.prefix = e->prefix;
	ev->route.protocol = RTPROT_KERNEL;
	ev->route.rtm_type = e->type;
	if (e->type == RTN_UNICAST)
		rig_kernel_hop(ev, NULL, e->ifindex);
	ev->ifindex = e->ifindex;
}

static void
address_changes(struct rig *g, const struct rig_entry *e, unsigned int n, bool gone)
{
	/* Adding a present address, or removing an absent one, is no change. */
	if (gone ? !entry_put(g, &e[0]) : entry_find(g, &e[0]) != 0 || !entry_get(g, &e[0]))
		return;
	for (unsigned int i = 1; i < n; i++)
		if (gone ? entry_put(g, &e[i]) : entry_get(g, &e[i]))
			entry_tell(g, &e[i], gone);
	rig_go(g);
}

void
rig_addr_peer(struct rig *g, uint32_t table, uint32_t ifindex, const char *addr,
	      const char *subnet, bool gone)
{
	struct prefix host = rig_prefix(addr), p = rig_prefix(subnet);
	struct rig_entry e[5];

	address_changes(g, e, entries_of_address(e, table, ifindex, &host.addr, &p), gone);
}

void
rig_addr_in(struct rig *g, uint32_t table, uint32_t ifindex, const char *addr_len,
	    bool gone)
{
	char text[PREFIX_STRLEN];

	snprintf(text, sizeof(text), "%s", addr_len);
	*strchr(text, '/') = '\0';
	rig_addr_peer(g, table, ifindex, text, addr_len, gone);
}

void
rig_addr(struct rig *g, uint32_t ifindex, const char *addr_len, bool gone)
{
	rig_addr_in(g, 0, ifindex, addr_len, gone);
}

void
rig_addrs_gone(struct rig *g, uint32_t ifindex)
{
	for (uint32_t i = 1; i <= g->entry_high; i++) {
		const struct rig_entry *at = &g->entry[i];
		struct rig_entry e[5];
		struct prefix p = at->prefix;

		if (at->type == TYPE_ADDRESS && at->ifindex == ifindex && at->refs != 0)
			address_changes(
				g, e,
				entries_of_address(e, at->table, ifindex, &p.addr, &p),
				true);
	}
}
