/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernel_table: read the kernel's routing tables through `ip route`.
 *
 * The daemon decodes the kernel's messages itself. This reader shares no code with it, so
 * `fpmctl audit` also finds errors of that decoder.
 */
#ifndef CTL_KERNEL_TABLE_H
#define CTL_KERNEL_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/prefix.h"
#include "ctl/hops_text.h"

struct kernel_route {
	struct prefix prefix;
	/* IPv6: for packets from here only; IPv4: of a TOS (tos_condition()); length 0: for all */
	struct prefix src;
	uint32_t table; /* 254: main, and local if is_local */
	uint32_t metric;
	uint8_t protocol;
	uint8_t preference; /* of IPv6, among equal metrics; the lowest counts */
	bool is_local;      /* of table local, which the kernel looks up before main */
	/*
	 * The links have no carrier, and either the kernel does not use the route, or the
	 * route is connected and the dataplane prefers another route.
	 */
	bool is_down;
	/* As hops_text.h spells them; for other types "local", "broadcast", "blackhole"... */
	struct hops_text hops;
	/*
	 * on_route() may use these two fields as a cache: they are 0 at first, and keep their
	 * values while only the prefix changes from one route to the next.
	 */
	uint64_t noted;
	uint32_t noted_place;
};

/* Receives the routes in the kernel's order: among equal metrics the first route counts. */
typedef void kernel_on_route(struct kernel_route *r, void *ctx);

/*
 * Call on_route() for the routes of one family in the present network namespace: of all
 * prefixes, or with `p` only of this prefix. Leaves out prefixes that no FIB has: loopback,
 * link-local, multicast. Returns 0, -ETIMEDOUT when `ip` was silent, or -1 after printing
 * an error.
 */
int kernel_table(uint8_t family, const struct prefix *p, kernel_on_route *on_route,
		 void *ctx);

/*
 * Call on_table() for each table that a rule of the family (`ip rule`) looks up, except for
 * rules that match no received packet. A kernel without rules has no such table.
 */
void kernel_rule_tables(uint8_t family, void (*on_table)(uint32_t table, void *ctx),
			void *ctx);

#endif
