/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rules: policy routing for forwarders. rib compiles the rules of the kernel of one family
 * to a list, which is immutable and is published as fib->rules[] (NULL: only the rules that
 * every kernel has). Only packets from interfaces that a rule concerns are checked against
 * the list (fib_iface.rules4, rules6). They take the slow path.
 *
 * As in the kernel, the rules are tried in order. A rule that names a table decides if the
 * table has a route for the destination; a route of type throw counts as none.
 */
#ifndef FIB_RULES_H
#define FIB_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rule.h"
#include "fib/fib.h"

/*
 * The index of the path of a route of table local that refuses packets. For routes of other
 * tables that refuse packets the index is 0.
 */
#define PATH_REFUSES_IN_LOCAL 1u
/*
 * The MTU class of the path of a route of type local, anycast or broadcast that is not in
 * table local. The class has no MTU, because no packet is sent by such a path.
 */
#define PATH_CLASS_NOT_OF_LOCAL FIB_CLASS_UNIFORM

/* Return true for the path of a route that refuses all packets. */
static inline bool
path_refuses(enum path_kind kind)
{
	return kind == PATH_BLACKHOLE || kind == PATH_UNREACHABLE || kind == PATH_PROHIBIT;
}

enum fib_rule_action {
	/*
	 * look up only own and broadcast addresses, and prefixes that table local refuses:
	 * in the FIB of the VRF, then of main
	 */
	FIB_RULE_LOCAL,
	FIB_RULE_TABLE, /* the FIB `number` */
	/*
	 * The FIB of the packet's VRF. Without a VRF the rule does not match, and with
	 * `invert` the FIB is that of main.
	 */
	FIB_RULE_VRF,
	FIB_RULE_PATH, /* the rule itself decides: `path` */
	FIB_RULE_GOTO, /* continue with the rule at `next` */
	FIB_RULE_NOP,
};

struct fib_rule {
	uint32_t pref, table; /* of the kernel, for display */
	/*
	 * The rule is for packets that came by this interface, or by a member of this VRF
	 * device. 0: for all packets; 1 (lo): for packets of this host.
	 */
	uint32_t ifindex;
	uint16_t number; /* FIB_RULE_TABLE: of the FIB; 0: main */
	uint16_t next;   /* FIB_RULE_GOTO */
	uint8_t action;  /* enum fib_rule_action */
	uint8_t path;    /* FIB_RULE_PATH: enum path_kind */
	bool invert;
	bool never; /* a selector matches no packet; with `invert` each packet matches */
	uint8_t tos, tos_mask, ip_proto;
	/*
	 * FIB_RULE_TABLE: routes that leave by an interface of this group do not count;
	 * RULE_NO_GROUP: all count.
	 */
	uint32_t suppress_group;
	struct rule_ports sport, dport;
	struct rule_bits label; /* IPv6 flow label; the mask 0: any */
	struct prefix src, dst; /* length 0: any */
};

/*
 * IPv6: for packets with a source in `src`, FIB `number` replaces FIB `base`, because the
 * table of `base` has source-specific routes. IPv4: for packets of a TOS
 * (tos_condition()).
 */
struct fib_rules_source {
	uint16_t base, number;
	struct prefix src;
};

struct fib_rules {
	uint32_t n, n_sources;
	/* Sorted by base, then by prefix length, the longest first. */
	const struct fib_rules_source *source;
	struct fib_rule rule[];
};

/* The fields of a packet that rules select by. */
struct fib_rules_key {
	const struct fib_copy *main; /* the reader's copy of the tries of main */
	const uint8_t *ip;           /* header */
	unsigned int room;    /* octets of the packet that can be read, 20 or 40 at least */
	uint32_t ifindex;     /* of the ingress TAP; 1: this host made it */
	uint32_t vrf_ifindex; /* fib_rules_vrf_device() of the ingress; 0: none */
	uint32_t flow_hash;
	uint16_t vrf; /* 0: none */
	uint8_t family;
	bool back;     /* a lookup of the reverse path: exchange the ports of the packet */
	bool no_ports; /* rules see `proto` as the protocol, and no ports */
	uint8_t proto;
};

struct fib_rules_hit {
	fib_path path;
	uint32_t group;  /* 0: the rule itself decided, or no rule did */
	uint32_t at;     /* place of the rule in the list; the list's length: none */
	uint16_t number; /* FIB that had the route; 0: main, or none */
};

/*
 * Return the ifindex of the VRF device of which an interface is a member; 0: none. in->vrf
 * does not tell the device, because VRFs with the same table have the same number.
 */
static inline uint32_t
fib_rules_vrf_device(const struct fib_iface *in)
{
	return in->vrf == 0 ? 0 : in->hook_ifindex;
}

/* Try the rules in order. PATH_NONE: no rule decides.                     [RCU reader] */
void fib_rules_walk(const struct fib *fib, const struct fib_rules *rules,
		    const struct fib_rules_key *key, struct fib_rules_hit *hit);

/*
 * Look up the FIB `number` alone, for a SID that names a table. No rule is tried, but
 * source-specific routes are used. [RCU reader]
 */
void fib_rules_table(const struct fib *fib, const struct fib_rules *rules,
		     const struct fib_rules_key *key, uint16_t number,
		     struct fib_rules_hit *hit);

/* Return the published list of a family, or NULL.                         [RCU reader] */
static inline const struct fib_rules *
fib_rules(const struct fib *fib, uint8_t family)
{
	return atomic_load_explicit(&fib->rules[family == 6], memory_order_consume);
}

/* Return true if packets look up a table with source-specific IPv6 routes. [RCU reader] */
static inline bool
fib_has_sources6(const struct fib *fib)
{
	const struct fib_rules *rules = fib_rules(fib, 6);

	return rules != NULL && rules->n_sources != 0;
}

/* Return true if rules concern the packets of a family from an interface. */
static inline bool
fib_rules_concern(const struct fib_iface *in, uint8_t family)
{
	return family == 4 ? in->rules4 : in->rules6;
}

/*
 * Resolve the destination of one packet as fib_resolve() does, by the rules if there are
 * any.                                                                    [RCU reader]
 *
 * in  the interface by which the packet came; NULL: this host made it.
 */
fib_path fib_resolve_packet(const struct fib *fib, const struct fib_iface *in, uint16_t vrf,
			    uint8_t family, const uint8_t *ip, unsigned int room);

/*
 * Resolve the destination of an ICMP error of this host; `ip`: its header. Linux looks up
 * the route of an IPv4 error before it chooses the source, so a rule for packets from a
 * subnet does not match an IPv4 error whose source is in the subnet. Linux chooses the
 * source of an IPv6 error before the lookup.
 *                                                                         [RCU reader]
 */
fib_path fib_resolve_error(const struct fib *fib, uint16_t vrf, uint8_t family,
			   const uint8_t *ip);

#endif
