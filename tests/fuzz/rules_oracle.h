/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A naive model of policy routing in Linux, for fuzz_rules. It has the rules and the routes
 * in plain arrays, and searches them from end to end for each packet. It shares no code
 * with the RIB, except for the comparison of addresses.
 */
#ifndef RULES_ORACLE_H
#define RULES_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/prefix.h"

#define ORACLE_RULES  12u
#define ORACLE_ROUTES 40u
/*
 * Table of the only VRF, whose member is port 13. Its last route is an unreachable default
 * route, so that no packet of the VRF continues in table main.
 */
#define ORACLE_VRF_TABLE 300u

struct oracle_ports {
	uint16_t first, last, mask; /* last 0: any port */
};

/* A rule with the members of the kernel's struct fib_rule. */
struct oracle_rule {
	uint8_t family, action;
	bool invert, l3mdev, has_dscp;
	uint8_t tos, dscp, ip_proto;
	uint32_t pref, table, target, mark, mark_mask, tunnel, uid[2];
	int32_t suppress;
	struct oracle_ports sport, dport;
	struct prefix src, dst;
	const char *iif, *oif;
};

struct oracle_hop {
	const char *gw; /* NULL: on link */
	uint32_t ifindex;
};

struct oracle_route {
	uint8_t family, type; /* RTN_* */
	bool zebra;
	uint32_t table, metric;
	const char *net, *src; /* src NULL: for all sources */
	const struct oracle_hop *hop;
};

struct oracle_packet {
	uint8_t family, tos, proto;
	bool fragment, own; /* own: to this router */
	uint16_t sport, dport, vrf;
	uint32_t ifindex; /* where it came in; 1: this host made it */
	struct prefix src, dst;
};

/* The state of the model that is neither a rule nor a route. */
struct oracle {
	bool up[3]; /* links 11, 12, 13 */
	bool vrf_up;
	bool no_main[2], no_default; /* the kernel's own rule was deleted */
};
extern struct oracle oracle;

/* Begin with no rules but those of every kernel, no routes and no VRF. All links are up. */
void oracle_begin(void);

/* Return false if there is no room. */
bool oracle_rule_add(const struct oracle_rule *rule);
/* Delete a rule of the family. Return false if it has none. */
bool oracle_rule_del(uint8_t family, unsigned int which);
/* Delete all rules, and restore the rules that every kernel has. */
void oracle_rules_clear(void);
/* List the rules of a family in the kernel's order. Return their number. */
uint32_t oracle_list(uint8_t family, const struct oracle_rule *list[ORACLE_RULES + 4]);

/* Return false if there is no room. */
bool oracle_route_add(const struct oracle_route *route);
/* Delete the route with the table, prefix, source and origin of `like`, if it exists. */
bool oracle_route_del(const struct oracle_route *like, struct oracle_route *old);
/* Delete any route. Return false if there is none. */
bool oracle_route_take(unsigned int which, struct oracle_route *old);

unsigned int oracle_n_packets(void);
struct oracle_packet oracle_packet(unsigned int i, unsigned int seed);
void oracle_packet_octets(const struct oracle_packet *k, uint8_t ip[64]);
/* Write the path of the packet as rig_path_text() does. */
void oracle_answer(const struct oracle_packet *k, char *out, size_t size);
/* Print the rules and the routes. */
void oracle_print(void);

#endif
