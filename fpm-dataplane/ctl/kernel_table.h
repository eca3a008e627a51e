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
	uint32_t table; /* 254: main, and local if is_local */
	uint32_t metric;
	uint8_t protocol;
	uint8_t preference; /* of IPv6, among equal metrics; the lowest counts */
	bool is_local;      /* of table local, which the kernel asks before main */
	/* connected, and its link has no carrier: the dataplane prefers another route */
	bool is_down;
	bool by_source, by_tos; /* for some packets only: not compared */
	/* As hops_text.h spells them; for other types "local", "broadcast", "blackhole"... */
	struct hops_text hops;
};

/* Receives the routes in the kernel's order: of equal metrics the first one counts. */
typedef void kernel_on_route(const struct kernel_route *r, void *ctx);

/*
 * Call on_route() for the routes of one family in the present network namespace: of all
 * prefixes, or with `p` of this prefix only. Leaves out prefixes that no FIB has: loopback,
 * link-local, multicast. Returns 0, -ETIMEDOUT when `ip` was silent, or -1 after printing
 * an error.
 */
int kernel_table(uint8_t family, const struct prefix *p, kernel_on_route *on_route,
		 void *ctx);

#endif
