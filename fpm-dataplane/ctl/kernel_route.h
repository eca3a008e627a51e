/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernel_route: decode the kernel's messages about IP routes (rtnetlink(7)) for the audit.
 *
 * The daemon decodes the same messages. This decoder shares no code with it, so `fpmctl
 * audit` also finds errors of the daemon's decoder.
 */
#ifndef CTL_KERNEL_ROUTE_H
#define CTL_KERNEL_ROUTE_H

#include <linux/netlink.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/prefix.h"
#include "ctl/hops_text.h"
#include "ctl/kernel_links.h"
#include "ctl/kernel_nexthop.h"

struct kernel_route {
	struct prefix prefix;
	/*
	 * The packets for which the route is. IPv6: their source. IPv4: their TOS, as
	 * tos_condition() writes it. Length 0: all packets.
	 */
	struct prefix src;
	uint32_t table; /* 254: table main, or table local if is_local */
	uint32_t metric;
	uint8_t protocol;
	uint8_t preference; /* of IPv6, among equal metrics; the lowest counts */
	bool is_local;      /* of table local, which the kernel looks up before main */
	/*
	 * The links have no carrier, and either the kernel does not use the route, or the
	 * route is connected and the dataplane prefers another route.
	 */
	bool is_down;
	/*
	 * As hops_text.h spells them; for other types "local", "broadcast", "blackhole"...
	 */
	struct hops_text hops;
	/*
	 * A reader may use these fields as a cache: they are 0 at first, and keep their
	 * values while only the prefix changes from one route to the next.
	 */
	uint64_t noted, noted_copy;
	uint32_t noted_place;
};

struct route_decoder;

/* Make a decoder for a network namespace with these interfaces (kernel_links()). */
struct route_decoder *route_decoder_new(const struct kernel_link *links, int n_links);
/*
 * Set the objects that routes may name instead of their next hops. They stay with the
 * caller.
 */
void route_decoder_set_nexthops(struct route_decoder *d, const struct kernel_nexthops *all);
/*
 * Set whether the kernel looks up table local first and then table main for IPv4.
 * Otherwise, and without this call, it uses both as one table. For IPv6 it always looks up
 * two tables.
 */
void route_decoder_set_split4(struct route_decoder *d, bool split4);
void route_decoder_free(struct route_decoder *d);

/*
 * Decode a message of type RTM_NEWROUTE. Returns the route, which is valid until the next
 * call, or NULL: *rc is 0 if no FIB has such a route, or -EBADMSG if an octet of the
 * message is not as rtnetlink(7) says.
 */
struct kernel_route *route_decode(struct route_decoder *d, const struct nlmsghdr *h,
				  int *rc);

#endif
