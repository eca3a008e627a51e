/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * decode: convert the netlink messages of one FPM frame to events.
 *
 * Decoded: RTM_NEWROUTE and RTM_DELROUTE of IPv4 and IPv6, RTM_NEWNEXTHOP, RTM_DELNEXTHOP.
 * Label routes (AF_MPLS) and the bridge neighbors of EVPN become routes of table
 * FPM_TABLE_NONE; the bridge neighbors are for display only. All other messages are counted
 * and skipped by their length. A message that is truncated or inconsistent is skipped as a
 * whole and never becomes an event.
 *
 * The events guarantee, beyond base/fpm_event.h:
 * - a message with rtm_table 0 gives an event of table main, as in the kernel;
 * - a route with RTA_NH_ID has no hops;
 * - a unicast route without RTA_NH_ID and without hops is an FPM_ROUTE with nhid 0 and
 *   n_hops 0, whose prefix is unreachable: zebra sends it when no next hop is usable;
 * - FPM_ROUTE of a type other than unicast has no nhid and no hops, even if the message
 *   has them.
 */
#ifndef FPM_DECODE_H
#define FPM_DECODE_H

#include "base/fpm_event.h"
#include "fpm/frame.h"

/* Counters of messages, owned and reset by the caller. Names as in struct fpm_status. */
struct fpm_decoded {
	uint64_t messages;
	uint64_t routes, route_dels, nexthops, nexthop_dels;
	uint64_t labels, macs; /* routes that are not IP; also in routes and route_dels */
	uint64_t skipped_type, skipped_route, malformed;
	uint32_t nl_pid; /* last nlmsg_pid above 0; set before its event is passed on */
};

/*
 * Take one event. The callback owns ev->hops, also when it returns an error. `ev` is valid
 * during the call only. Returns 0 or -errno; an error ends the decoding.
 */
typedef int fpm_on_event(void *arg, const struct fpm_event *ev);

/*
 * Decode all messages of `frame` in order and pass the events to `on_event`.
 *                                                            [any thread, no side effects]
 *
 * frame  any octets at any alignment; only frame->len octets are read.
 *
 * Returns 0, -ENOMEM, or the error of `on_event`. Malformed input is counted and is no
 * error.
 */
int fpm_decode(const struct fpm_frame *frame, fpm_on_event *on_event, void *arg,
	       struct fpm_decoded *decoded);

#endif
