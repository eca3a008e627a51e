/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Find rules of policy routing that rib does not obey, and routes that it uses in another
 * way than Linux. The rows of `show rules` have the reason. [warn]
 */
#include <linux/rtnetlink.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/kernel_event.h"
#include "warn/impl.h"

static void
rule_add(struct warn *w, const json_t *row)
{
	char where[128], here[128];

	snprintf(where, sizeof(where), "%s rule %lld, from %s to %s",
		 row_text(row, "family"),
		 (long long)json_integer_value(json_object_get(row, "pref")),
		 row_text(row, "from"), row_text(row, "to"));
	snprintf(here, sizeof(here), "The part %s is not obeyed: fpmctl show rules.",
		 row_text(row, "lacks"));
	list_add(&w->list, WARNING_RULE, where,
		 "Linux chooses the table of a packet by all parts of the rule.", here);
}

static bool
row_is(const json_t *row, const char *key, const char *text)
{
	return strcmp(row_text(row, key), text) == 0;
}

/* Return true if all packets match the rule. */
static bool
row_is_for_all(const json_t *row)
{
	return row_is(row, "from", "all") && row_is(row, "to", "all") &&
	       json_is_null(json_object_get(row, "iif")) &&
	       !json_is_string(json_object_get(row, "oif")) &&
	       !json_is_string(json_object_get(row, "flowlabel")) &&
	       json_is_null(json_object_get(row, "tos")) &&
	       json_is_null(json_object_get(row, "ip_protocol")) &&
	       json_is_null(json_object_get(row, "sport")) &&
	       json_is_null(json_object_get(row, "dport")) &&
	       json_is_null(json_object_get(row, "lacks")) &&
	       !json_is_true(json_object_get(row, "not"));
}

/*
 * Find a rule that looks up table main before table local. The FIB does not obey this
 * order, because its table main also has the addresses of table local.
 */
static void
order_scan(struct warn *w, const char *family)
{
	char where[64];
	const json_t *row;
	size_t i;

	json_array_foreach (w->rules, i, row) {
		json_int_t table = json_integer_value(json_object_get(row, "table"));

		if (!row_is(row, "family", family) || !row_is(row, "action", "lookup"))
			continue;
		if (table == RT_TABLE_LOCAL && row_is_for_all(row))
			return;
		if (table != RT_TABLE_MAIN)
			continue;
		snprintf(where, sizeof(where), "%s rule %lld before table local", family,
			 (long long)json_integer_value(json_object_get(row, "pref")));
		list_add(&w->list, WARNING_RULE, where,
			 "Linux asks table main first: it treats its own addresses as "
			 "neighbors, and forwards broadcasts of its subnets.",
			 "Own addresses and broadcasts stay those of table local.");
		return;
	}
}

static void
link_add(struct warn *w, const json_t *row)
{
	char where[64];

	if (strcmp(row_text(row, "why"), "loopback") == 0) {
		list_add(&w->list, WARNING_LOOPBACK, "routes by the interface lo",
			 "Linux sends such a packet to itself until its TTL is used up.",
			 "It is dropped (foreign_oif) and causes an ICMP error.");
		return;
	}
	if (strcmp(row_text(row, "why"), "encap") == 0) {
		list_add(&w->list, WARNING_ENCAP,
			 "routes with an unsupported encapsulation",
			 "Linux encapsulates the packets of the route.",
			 "The next hop is not used: fpmctl show routes state unsupported.");
		return;
	}
	if (strcmp(row_text(row, "why"), "local-source") == 0) {
		list_add(&w->list, WARNING_SOURCE,
			 "routes for a source or a TOS in table local, beside VRFs",
			 "For a route of type throw, and for packets from other sources "
			 "(IPv6), Linux goes on to the next rules.",
			 "Packets of VRFs obey the route of the same prefix in table local "
			 "that is for all packets.");
		return;
	}
	if (strcmp(row_text(row, "why"), "ipv6-off") == 0) {
		snprintf(where, sizeof(where), "%s without IPv6", row_text(row, "name"));
		list_add(&w->list, WARNING_IPV6_OFF, where,
			 "Linux drops IPv6 packets that leave by this interface.",
			 "IPv4 routes have the same next hops, so this one stays. Its "
			 "flows are dropped (ipv6_off) and cause ICMP errors.");
		return;
	}
	snprintf(where, sizeof(where), "%s without carrier", row_text(row, "name"));
	list_add(&w->list, WARNING_CARRIER, where,
		 "Linux keeps the connected subnets of a link without carrier, and drops "
		 "packets to them.",
		 "Another route forwards them.");
}

/* Add warnings about routes that rib and rtnl count in kernel_status. */
static void
counts_scan(struct warn *w)
{
	static const struct {
		_Atomic uint32_t *count;
		enum warning_kind kind;
		const char *where, *in_linux, *dataplane;
	} of[] = {
		{&kernel_status.short_local, WARNING_LOCAL,
		 "routes by a next hop in table local",
		 "Linux asks table local first: such a route hides longer prefixes of "
		 "table main.",
		 "The longest prefix of both tables counts."},
		{&kernel_status.expired_joined, WARNING_LIFE,
		 "an expired IPv6 route with several next hops",
		 "Linux uses all of its next hops until the last of them expires, and "
		 "reports the lifetime of the first next hop only.",
		 "The route is not used: delete its expired next hop."},
		{&kernel_status.cut_now, WARNING_LARGE, "a route with too many next hops",
		 "Linux obeys it, but a list of its routes ends there.",
		 "Some routes that Linux lists after it may be missing after a start, and "
		 "deletions without an event are not found."},
		{&kernel_status.by_ingress, WARNING_ORDER,
		 "IPv6 routes of one prefix and metric by several interfaces",
		 "Linux prefers the route by the interface on which the packet came.",
		 "All packets take the first of these routes: ip -6 route show PREFIX."},
		{&kernel_status.several_mtus, WARNING_MTU,
		 "an IPv6 route with next hops of several MTUs",
		 "Linux uses the MTU of each next hop.",
		 "All next hops have the MTU of the last message of the kernel."},
		{&kernel_status.mixed, WARNING_MIXED,
		 "next hops by ports and by interfaces of the kernel",
		 "Linux shares the flows of a route among all of its next hops.",
		 "The kernel chooses a next hop once more for flows of its interfaces, so "
		 "ports get more than their share."},
	};

	for (unsigned int i = 0; i < sizeof(of) / sizeof(of[0]); i++)
		if (atomic_load_explicit(of[i].count, memory_order_relaxed) > 0)
			list_add(&w->list, of[i].kind, of[i].where, of[i].in_linux,
				 of[i].dataplane);
}

void
rules_scan(struct warn *w)
{
	const json_t *row;
	size_t i;

	json_array_foreach (w->rules, i, row)
		if (json_is_false(json_object_get(row, "obeyed")))
			rule_add(w, row);
	order_scan(w, "ipv4");
	order_scan(w, "ipv6");
	json_array_foreach (w->links, i, row)
		link_add(w, row);
	counts_scan(w);
}
