/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * decode: convert the netlink messages of one FPM frame to events.
 *
 * Decoded: RTM_NEWROUTE and RTM_DELROUTE of IPv4 and IPv6, RTM_NEWNEXTHOP, RTM_DELNEXTHOP.
 * Decoded as routes of table FPM_TABLE_NONE: label routes (AF_MPLS), and for display only
 * the bridge neighbors of EVPN. All other messages are counted and skipped by their length.
 * A message that is truncated or inconsistent is skipped as a whole and never becomes an
 * event.
 *
 * The events guarantee, beyond base/fpm_event.h:
 * - rtm_table 0 means main, as in the kernel;
 * - a route with RTA_NH_ID has no hops; a unicast route without RTA_NH_ID and without hops
 *   (zebra sends it when no next hop is usable) is an upsert with nhid 0 and n_hops 0:
 *   nothing is reachable;
 * - FPM_ROUTE of a type other than unicast has no nhid and no hops, even if the message
 *   has.
 */
#ifndef FPM_DECODE_H
#define FPM_DECODE_H

#include "base/fpm_event.h"
#include "fpm/frame.h"

/* Counters of messages, owned and reset by the caller. Names as in struct fpm_status. */
struct fpm_decoded {
	uint64_t messages;
	uint64_t routes, route_dels, nexthops, nexthop_dels;
	uint64_t labels, macs; /* included in routes and route_dels: not IP */
	uint64_t skipped_type, skipped_route, malformed;
	uint32_t nl_pid; /* last nlmsg_pid above 0; set before its event is passed on */
};

/*
 * Take one event. It owns ev->hops from the call on, also when it returns an error; `ev` is
 * valid during the call only. Returns 0 or -errno; an error ends the decoding.
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
