/* SPDX-License-Identifier: BSD-3-Clause */
/* Walk over the policy rules. Nothing is written.                           [RCU reader] */
#include "fib/rules.h"

#include <netinet/in.h>
#include <string.h>

#include "base/inet.h"
#include "base/kernel_event.h"
#include "base/msg.h"

/* --- selectors ------------------------------------------------------------------------ */

struct ports {
	uint16_t source, dest; /* 0: the packet has none */
	uint8_t proto;
};

/*
 * Return the place of the ports behind the header of a protocol; -1: it has none. As in the
 * kernel, the halves of the SPI of ESP and of AH count as ports (proto_ports_offset() of
 * Linux).
 */
static int
ports_offset(uint8_t proto)
{
	switch (proto) {
	case IPPROTO_DCCP:
	case IPPROTO_ESP:
		return 0;
	case IPPROTO_AH:
		return 4;
	default:
		return proto_has_ports(proto) ? 0 : -1;
	}
}

/*
 * Read the protocol and the ports. As in the kernel, no fragment has ports, and IPv6
 * extension headers are passed over.
 */
static struct ports
packet_ports(const struct fib_rules_key *key)
{
	const uint8_t *ip = key->ip;
	unsigned int off = key->family == 4 ? (ip[0] & 15u) * 4 : 40;
	struct ports found = {.proto = key->family == 4 ? ip[9] : ip[6]};
	int at;

	if (key->family == 4 && (get_be16(ip + 6) & 0x3fff) != 0)
		return found;
	while (key->family == 6 &&
	       (found.proto == 0 || found.proto == 43 || found.proto == 60)) {
		if (off + 8 > key->room)
			return found;
		found.proto = ip[off];
		off += 8u + ip[off + 1] * 8u;
	}
	if (key->family == 6 && found.proto == 44) {
		if (off + 8 <= key->room)
			found.proto = ip[off];
		return found;
	}
	at = ports_offset(found.proto);
	if (at < 0 || off + (unsigned int)at + 4 > key->room)
		return found;
	off += (unsigned int)at;
	found.source = get_be16(ip + off);
	found.dest = get_be16(ip + off + 2);
	return found;
}

static bool
port_matches(const struct rule_ports *want, uint16_t port)
{
	if (want->last == 0)
		return true;
	if (want->mask != 0)
		return ((want->first ^ port) & want->mask) == 0;
	return port >= want->first && port <= want->last;
}

static bool
rule_ports_match(const struct fib_rule *rule, const struct fib_rules_key *key)
{
	struct ports has;

	if (rule->ip_proto == 0 && rule->sport.last == 0 && rule->dport.last == 0)
		return true;
	if (key->no_ports)
		has = (struct ports){.proto = key->proto};
	else
		has = packet_ports(key);
	if (key->back)
		has = (struct ports){
			.source = has.dest, .dest = has.source, .proto = has.proto};
	return (rule->ip_proto == 0 || rule->ip_proto == has.proto) &&
	       port_matches(&rule->sport, has.source) &&
	       port_matches(&rule->dport, has.dest);
}

static bool
prefix_matches(const struct prefix *p, const uint8_t *octets)
{
	struct ipaddr addr = {0};

	if (p->len == 0)
		return true;
	memcpy(addr.octet, octets, family_octets(p->family));
	return prefix_covers(p, &addr);
}

static uint8_t
packet_tos(const struct fib_rules_key *key)
{
	const uint8_t *ip = key->ip;

	return key->family == 4 ? ip[1] : (uint8_t)(ip[0] << 4 | ip[1] >> 4);
}

/* An IPv4 packet has no flow label, and no rule of IPv4 has one. */
static bool
rule_label_matches(const struct fib_rule *rule, const struct fib_rules_key *key)
{
	return rule->label.mask == 0 ||
	       ((get_be32(key->ip) ^ rule->label.value) & rule->label.mask) == 0;
}

/*
 * Return true if the packet came in by the interface of the rule, or by a member of it if
 * it is a VRF. A packet of this host in a VRF, such as an ICMP error, came in by the
 * loopback device alone, so its key has no VRF device (l3mdev_fib_rule_iif_match() of
 * Linux).
 */
static bool
rule_iif_matches(const struct fib_rule *rule, const struct fib_rules_key *key)
{
	return rule->ifindex == 0 || rule->ifindex == key->ifindex ||
	       rule->ifindex == key->vrf_ifindex;
}

static bool
rule_matches(const struct fib_rule *rule, const struct fib_rules_key *key)
{
	const uint8_t *src = key->ip + (key->family == 4 ? 12 : 8);
	bool is = !rule->never && rule_iif_matches(rule, key) &&
		  (rule->action != FIB_RULE_VRF || key->vrf != 0) &&
		  prefix_matches(&rule->src, src) &&
		  prefix_matches(&rule->dst, src + family_octets(key->family)) &&
		  ((packet_tos(key) ^ rule->tos) & rule->tos_mask) == 0 &&
		  rule_label_matches(rule, key) && rule_ports_match(rule, key);

	return is != rule->invert;
}

/* --- actions -------------------------------------------------------------------------- */

/* Return the FIB that replaces `base` for this packet's source (IPv6) or TOS (IPv4). */
static uint16_t
number_for_packet(const struct fib_rules *rules, const struct fib_rules_key *key,
		  uint16_t base)
{
	uint8_t tos = packet_tos(key) & TOS_LOOKUP_MASK;

	for (uint32_t i = 0; i < rules->n_sources; i++) {
		const struct fib_rules_source *source = &rules->source[i];

		if (source->base == base &&
		    (key->family == 4 ? source->src.addr.octet[0] == tos
				      : prefix_matches(&source->src, key->ip + 8)))
			return source->number;
	}
	return base;
}

/* Look up the destination in FIB `number`. Returns the group; 0: no route, or no FIB. */
static uint32_t
number_lookup(const struct fib *fib, const struct fib_rules_key *key, uint16_t number)
{
	const struct poptrie *pt;

	if (key->family == 4) {
		pt = number == 0 ? key->main->pt4 : fib_vrf_pt4(fib, number);
		return pt == NULL ? 0 : poptrie4_lookup(pt, get_be32(key->ip + 16));
	}
	pt = number == 0 ? key->main->pt6 : fib_vrf_pt6(fib, number);
	return pt == NULL ? 0 : poptrie6_lookup(pt, key->ip + 24);
}

/* Look up the destination in FIB `number`. */
static void
number_resolve(const struct fib *fib, const struct fib_rules_key *key, uint16_t number,
	       struct fib_rules_hit *hit)
{
	hit->number = number;
	hit->group = number_lookup(fib, key, number);
	hit->path = fib_group_path(fib, hit->group, key->flow_hash);
}

/* Look up the destination in FIB `number`. Returns true if it has a route. */
static bool
number_answers(const struct fib *fib, const struct fib_rules *rules,
	       const struct fib_rules_key *key, uint16_t number, struct fib_rules_hit *hit)
{
	number_resolve(fib, key, number_for_packet(rules, key, number), hit);
	return !path_is_no_route(hit->path);
}

/*
 * Look up the destination in the FIB of the packet's VRF. Returns true if it has a route,
 * or if the VRF has no FIB or not all its routes yet: the next rules must not decide then.
 */
static bool
vrf_answers(const struct fib *fib, const struct fib_rules *rules,
	    const struct fib_rules_key *key, struct fib_rules_hit *hit)
{
	if (number_answers(fib, rules, key, key->vrf, hit))
		return true;
	if (key->vrf == 0 || (fib_vrf(fib, key->vrf) != NULL &&
			      atomic_load_explicit(&fib->vrfs_told, memory_order_relaxed)))
		return false;
	hit->group = 0;
	hit->path = PATH(PATH_NO_FIB, 0);
	return true;
}

/*
 * Return true if the path leaves by an interface of the group. Linux checks the first next
 * hop of a route (fib4_rule_suppress()); this function checks the next hop of the packet.
 */
static bool
path_is_in_group(const struct fib *fib, fib_path path, uint32_t group)
{
	const struct fib_iface *out = NULL;

	if (group == RULE_NO_GROUP)
		return false;
	if (path_kind(path) == PATH_ADJ)
		out = fib_iface(fib, fib->adj[path_index(path)].ifidx);
	else if (path_kind(path) == PATH_ONLINK)
		out = fib_iface(fib, (uint16_t)path_index(path));
	return out != NULL && out->group == group;
}

/* Return true for a path of table local. A SID (fib/sid_entry.h) is in no table local. */
static bool
path_is_of_local(fib_path path)
{
	if (path_mtu_class(path) == PATH_CLASS_NOT_OF_LOCAL)
		return false;
	return (path_kind(path) == PATH_LOCAL && path_index(path) == 0) ||
	       path_kind(path) == PATH_BCAST ||
	       (path_refuses(path_kind(path)) && path_index(path) == PATH_REFUSES_IN_LOCAL);
}

/*
 * Look up table local, and return true if the path is of a route of table local. The
 * prefixes of table local are in the FIB of main and in the FIBs of VRFs. Its routes for a
 * source or a TOS are only in views of main, so a view is looked up first.
 */
static bool
local_answers(const struct fib *fib, const struct fib_rules *rules,
	      const struct fib_rules_key *key, struct fib_rules_hit *hit)
{
	uint16_t view = number_for_packet(rules, key, 0);

	if (key->vrf != 0 && view == 0) {
		number_resolve(fib, key, key->vrf, hit);
		if (path_is_of_local(hit->path))
			return true;
	}
	number_resolve(fib, key, view, hit);
	if (key->vrf != 0 && view != 0 && !path_is_of_local(hit->path))
		number_resolve(fib, key, key->vrf, hit);
	return path_is_of_local(hit->path);
}

static bool
rule_answers(const struct fib *fib, const struct fib_rules *rules,
	     const struct fib_rule *rule, const struct fib_rules_key *key,
	     struct fib_rules_hit *hit)
{
	switch ((enum fib_rule_action)rule->action) {
	case FIB_RULE_TABLE:
		return number_answers(fib, rules, key, rule->number, hit) &&
		       !path_is_in_group(fib, hit->path, rule->suppress_group);
	case FIB_RULE_VRF:
		return vrf_answers(fib, rules, key, hit);
	case FIB_RULE_LOCAL:
		return local_answers(fib, rules, key, hit);
	case FIB_RULE_PATH:
		*hit = (struct fib_rules_hit){.path = PATH((enum path_kind)rule->path, 0),
					      .at = hit->at};
		return true;
	default:
		return false;
	}
}

void
fib_rules_walk(const struct fib *fib, const struct fib_rules *rules,
	       const struct fib_rules_key *key, struct fib_rules_hit *hit)
{
	const struct fib_rule *rule;

	/* The target of a goto is always behind the rule. */
	for (hit->at = 0; hit->at < rules->n;) {
		rule = &rules->rule[hit->at];
		if (!rule_matches(rule, key))
			hit->at++;
		else if (rule->action == FIB_RULE_GOTO)
			hit->at = rule->next;
		else if (rule_answers(fib, rules, rule, key, hit))
			return;
		else
			hit->at++;
	}
	*hit = (struct fib_rules_hit){.path = PATH(PATH_NONE, 0), .at = rules->n};
}

void
fib_rules_table(const struct fib *fib, const struct fib_rules *rules,
		const struct fib_rules_key *key, uint16_t number, struct fib_rules_hit *hit)
{
	hit->at = rules->n;
	number_resolve(fib, key, number_for_packet(rules, key, number), hit);
}

fib_path
fib_resolve_packet(const struct fib *fib, const struct fib_iface *in, uint16_t vrf,
		   uint8_t family, const uint8_t *ip, unsigned int room)
{
	const struct fib_rules *rules =
		in == NULL || fib_rules_concern(in, family) ? fib_rules(fib, family) : NULL;
	struct fib_rules_key key = {.main = &fib->copy[0],
				    .ip = ip,
				    .room = room,
				    .ifindex = in == NULL ? LOOPBACK_IFINDEX : in->ifindex,
				    .vrf_ifindex =
					    in == NULL ? 0 : fib_rules_vrf_device(in),
				    .flow_hash = flow_hash(ip, room, family, fib->seed),
				    .vrf = vrf,
				    .family = family};
	struct fib_rules_hit hit;
	struct ipaddr dst = {0};

	if (rules == NULL)
		return fib_resolve_ip(fib, vrf, family, ip, room);
	memcpy(dst.octet, ip + (family == 4 ? 16 : 24), family_octets(family));
	fib_rules_walk(fib, rules, &key, &hit);
	if (path_kind(hit.path) == PATH_VRF)
		return fib_resolve_in_vrf(fib, hit.path, family, &dst, key.flow_hash);
	if (path_kind(hit.path) != PATH_ONLINK)
		return hit.path;
	return path_with_mtu(fib_onlink(fib, (uint16_t)path_index(hit.path), family, &dst),
			     path_mtu_class(hit.path));
}

fib_path
fib_resolve_error(const struct fib *fib, uint16_t vrf, uint8_t family, const uint8_t *ip)
{
	uint8_t copy[40];
	unsigned int room = family == 4 ? 20 : 40;

	memcpy(copy, ip, room);
	if (family == 4) {
		copy[0] = 0x45; /* without options */
		memset(copy + 12, 0, 4);
	}
	return fib_resolve_packet(fib, NULL, vrf, family, copy, room);
}
