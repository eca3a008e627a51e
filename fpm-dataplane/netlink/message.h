/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * message: decode one rtnetlink message about a route or a next hop. zebra sends such
 * messages over FPM; the kernel sends them, too (kernel_message.h).
 */
#ifndef NETLINK_MESSAGE_H
#define NETLINK_MESSAGE_H

#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>

#include "base/fpm_event.h"
#include "netlink/attributes.h"

/*
 * The verdict about a message. SKIP_TYPE: the daemon does not use such messages.
 * SKIP_ROUTE: the daemon does not support routes of this kind. Errors are -EBADMSG
 * (malformed) and -ENOMEM.
 */
enum verdict { TAKEN, SKIP_TYPE, SKIP_ROUTE };

/*
 * Decode one message of zebra into the zeroed event `ev`. `nlh` is 4-aligned and complete.
 * Returns a verdict or an error; `ev` is complete only when TAKEN, and owns its hops also
 * after an error.                                                             [any thread]
 */
int message_decode(const struct nlmsghdr *nlh, struct fpm_event *ev);

/* --- parts of message_decode() that kernel_message.c uses, too ------------------------ */

/* Index the attributes that follow the fixed header of `fixed` octets in a message. */
int message_attrs(const struct nlmsghdr *nlh, size_t fixed, struct attrs *attrs);

/*
 * Read RTA_DST into a zeroed prefix of length `len`. Senders mask their prefixes, so host
 * bits mean a broken message. Returns 0 or -EBADMSG.
 */
int message_prefix(struct prefix *p, const struct attrs *attrs, uint8_t family,
		   uint8_t len);

/* Read RTAX_MTU of RTA_METRICS into ev->mtu_bytes. Returns 0 or -EBADMSG. */
int message_mtu(struct fpm_event *ev, const struct nlattr *metrics);

/* Read the next hops of a route, or its next-hop id. Returns as the functions of hops.h. */
int message_hops(struct fpm_event *ev, const struct attrs *attrs, unsigned int flags);

/*
 * Decode a route of an MPLS label (doc/fpm.md, 5.2). The event of a deletion has no hops.
 * Returns as message_decode().
 */
int message_label(const struct rtmsg *rtm, const struct attrs *attrs, bool del,
		  struct fpm_event *ev);

/* Decode RTM_NEWNEXTHOP or RTM_DELNEXTHOP. Returns as message_decode(). */
int message_nexthop(const struct nlmsghdr *nlh, struct fpm_event *ev);

#endif
