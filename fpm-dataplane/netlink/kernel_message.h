/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernel_message: decode one rtnetlink message of the kernel about a route or a next hop.
 */
#ifndef NETLINK_KERNEL_MESSAGE_H
#define NETLINK_KERNEL_MESSAGE_H

#include "base/kernel_event.h"
#include "netlink/message.h"

/* Verdicts beyond those of message.h. */
enum kernel_verdict {
	KERNEL_TAKEN = TAKEN,
	KERNEL_SKIP_TYPE = SKIP_TYPE, /* about neither a route nor a next hop */
	/*
	 * a route that forwarders do not use: multicast, link-local, loopback, cached, of a
	 * reserved table or label, of a TOS that no lookup has; an entry of a VXLAN FDB
	 */
	KERNEL_SKIP = SKIP_ROUTE,
	/*
	 * In a dump: an expired route. The kernel deletes it later, or gives it a new
	 * lifetime without a message. ev->route.protocol is set.
	 */
	KERNEL_SKIP_EXPIRED,
};

/*
 * Decode one message of the kernel into the zeroed event `ev`. `nlh` is 4-aligned and
 * complete. `dump`: the message answers a dump.
 *
 * expires_ms  out: milliseconds until the kernel stops using the route, at most a day; 0:
 *             the route does not expire.
 *
 * Returns a verdict, -EBADMSG or -ENOMEM; `ev` is complete only when KERNEL_TAKEN. `ev`
 * owns its hops also after an error.                                          [any thread]
 */
int kernel_message_decode(const struct nlmsghdr *nlh, bool dump, struct kernel_event *ev,
			  uint32_t *expires_ms);

#endif
