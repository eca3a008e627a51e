/* SPDX-License-Identifier: BSD-3-Clause */
/* A route as a row of `show routes`, and parts of it that other rows have, too. [rib] */
#include "rib/route_row.h"

#include <inttypes.h>
#include <jansson.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/rtproto.h"
#include "fib/label.h"
#include "rib/content.h"
#include "rib/encap_row.h"
#include "rib/kroute.h"
#include "rib/leg.h"
#include "rib/impl.h"
#include "rib/route.h"
#include "rib/routes.h"
#include "rib/rule_row.h"
#include "rib/slot.h"
#include "rib/vrf.h"

static json_t *
json_name_or_number(const char *name, unsigned int number)
{
	char text[12];

	if (name != NULL)
		return json_string(name);
	snprintf(text, sizeof(text), "%u", number);
	return json_string(text);
}

static json_t *
protocol_json(uint8_t protocol)
{
	return json_name_or_number(rtproto_name(protocol), protocol);
}

static json_t *
type_json(uint8_t rtm_type)
{
	static const char *const name[] = {
		[RTN_UNICAST] = "unicast",     [RTN_LOCAL] = "local",
		[RTN_BROADCAST] = "broadcast", [RTN_ANYCAST] = "anycast",
		[RTN_BLACKHOLE] = "blackhole", [RTN_UNREACHABLE] = "unreachable",
		[RTN_PROHIBIT] = "prohibit",   [RTN_THROW] = "throw",
	};

	return json_name_or_number(rtm_type <= RTN_THROW ? name[rtm_type] : NULL, rtm_type);
}

/*
 * Return the type of a route as Linux reports it. A route by a next-hop object that is a
 * blackhole is of type blackhole as long as the object is one.
 */
static uint8_t
row_type(const struct slot *s, uint8_t rtm_type)
{
	return rtm_type == RTN_UNICAST && s->n_legs == 1 &&
			       s->leg[0].hop.kind == PATH_BLACKHOLE
		       ? RTN_BLACKHOLE
		       : rtm_type;
}

enum path_kind
path_shown_kind(fib_path path)
{
	return path_kind(path) == PATH_ENCAP && !path_is_unsupported(path)
		       ? PATH_ADJ
		       : path_kind(path);
}

enum path_kind
slot_path_kind(const struct rib *rib, uint32_t number)
{
	return path_shown_kind(fib_group_path(rib->fib, number, 0));
}

const char *
path_state_name(enum path_kind kind)
{
	static const char *const name[] = {
		[PATH_NONE] = "unresolved",         [PATH_ADJ] = "forwarding",
		[PATH_ONLINK] = "onlink",           [PATH_LOCAL] = "local",
		[PATH_BCAST] = "broadcast",         [PATH_BLACKHOLE] = "blackhole",
		[PATH_UNREACHABLE] = "unreachable", [PATH_PROHIBIT] = "prohibit",
		[PATH_UNRESOLVED] = "unresolved",   [PATH_FOREIGN] = "foreign",
		[PATH_ENCAP] = "unsupported",       [PATH_DOWN] = "down",
		[PATH_VRF] = "forwarding",          [PATH_THROW] = "throw",
		[PATH_KERNEL] = "through-kernel",
	};

	return name[kind];
}

/* Return the interface of a next hop; 0: none. */
static uint32_t
leg_ifindex(const struct leg *leg)
{
	return leg->link != NULL ? leg->link->ifindex : leg->hop.ifindex;
}

json_t *
dev_json(const struct leg *leg)
{
	const char *name = leg->link != NULL ? leg->link->name : "";
	char text[IFNAMSIZ];

	if (leg->hop.ifindex == 0 && leg->link == NULL)
		return json_null();
	/* Write a name that is not UTF-8 as fpmctl audit reads it in zebra's answer. */
	if (name[0] != '\0')
		return json_string(log_utf8(name, text, sizeof(text)));
	snprintf(text, sizeof(text), "if%u", leg_ifindex(leg));
	return json_string(text);
}

json_t *
legs_json(const struct rib *rib, const struct slot *s)
{
	json_t *array = json_array();
	char buf[PREFIX_STRLEN];
	fib_path path;

	for (uint32_t i = 0; i < s->n_legs; i++) {
		const struct leg *leg = &s->leg[i];
		const struct next_hop *hop = &leg->hop;
		json_t *via = json_null(), *row;

		if (hop->kind != PATH_NONE)
			continue; /* no next hop: blackhole, local, a member not announced */
		if (hop->gw_family != 0)
			via = json_string(ipaddr_str(&hop->gw, hop->gw_family, buf));
		row = json_pack("{s:o, s:o, s:I, s:I, s:b, s:b, s:I}", "via", via, "dev",
				dev_json(leg), "ifindex", (json_int_t)leg_ifindex(leg),
				"weight", (json_int_t)hop->weight, "alive",
				leg_path(rib, leg, &path) <= LEG_RESOLVING, "kernel_dead",
				hop->dead, "adj", (json_int_t)leg->adj);
		hop_add_encap(row, rib, hop);
		json_array_append_new(array, row);
	}
	return array;
}

json_t *
mtu_json(const struct rib *rib, const struct slot *s)
{
	uint16_t class = s->n_legs == 0 ? 0 : s->leg[0].hop.mtu_class;

	uint16_t mtu = fib_class_mtu(rib->fib, class);

	return mtu == 0 ? json_null() : json_integer(mtu);
}

json_t *
vrf_json(const struct vrf *vrf)
{
	return vrf == NULL || vrf_is_for_rules(vrf) ? json_null()
						    : json_string(vrf->fib->name);
}

/* Return the name of the source of a route of the kernel. */
static const char *
kroute_source_name(const struct kroute *kr)
{
	if (kr->rtm_type == RTN_LOCAL || kr->rtm_type == RTN_ANYCAST)
		return "local";
	return kr->connected || kr->rtm_type == RTN_BROADCAST ? "connected" : "kernel";
}

struct shown_route
route_shown(const struct rib *rib, const struct route *r, enum query_of of)
{
	const struct rib_kroutes *k = &rib->kroutes;
	uint32_t i;

	if (of == OF_ZEBRA || (of == OF_FIB && r->kslot == 0))
		return (struct shown_route){r->zslot, NULL};
	i = kroute_best(k, of == OF_KERNEL ? NULL : &rib->links, r);
	if (i == 0)
		return (struct shown_route){0};
	return (struct shown_route){k->v[i].slot, &k->v[i]};
}

json_t *
route_json(const struct rib *rib, const struct route *r, const struct shown_route *shown)
{
	const struct slot *s = slot_at(&rib->slots, shown->slot);
	const struct kroute *kr = shown->kr;
	uint32_t table = source_kernel_table(&rib->sources, r->table);
	const struct vrf *vrf = vrf_find(rib, table);
	bool hidden = s->n_legs > 0 && route_is_hidden(rib, r);
	bool has_fib =
		(vrf != NULL || table == RIB_TABLE_MAIN || r->family == FAMILY_LABEL) &&
		!hidden;
	bool not_ip = r->table == FPM_TABLE_NONE;
	fib_path path = fib_group_path(rib->fib, s->number, 0);
	enum path_kind kind = path_shown_kind(path);
	struct prefix p = route_prefix(r);
	char buf[PREFIX_STRLEN];
	json_t *row;

	/* A route that leads into its own VRF forwards nothing. */
	if (kind == PATH_VRF && vrf != NULL && path_index(path) == vrf->number)
		kind = PATH_FOREIGN;
	row = json_pack(
		"{s:s, s:I, s:o, s:s, s:o, s:o, s:o, s:I, s:I, s:s, s:b, s:o, s:o}",
		"prefix", prefix_str(&p, buf), "table", (json_int_t)(not_ip ? 0 : table),
		"vrf", vrf_json(vrf), "source",
		kr == NULL ? "zebra" : kroute_source_name(kr), "protocol",
		protocol_json(kr == NULL ? (uint8_t)r->protocol : kr->protocol), "type",
		type_json(row_type(s, kr == NULL ? (uint8_t)r->rtm_type : kr->rtm_type)),
		"metric", kr == NULL ? json_null() : json_integer(kr->metric), "nexthop_id",
		(json_int_t)s->nhid, "group", (json_int_t)s->number, "state",
		has_fib  ? path_state_name(kind)
		: not_ip ? "unsupported"
			 : "not-installed",
		"stale", route_is_swept(rib, r) && kr == NULL && r->gen != rib->session.gen,
		"mtu", mtu_json(rib, s), "nexthops", legs_json(rib, s));
	if (source_is_table(r->table))
		row_add_condition(row, &source_of(&rib->sources, r->table)->src);
	return row;
}
