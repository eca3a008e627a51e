/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * decode: the netlink messages of one FPM frame, as events.
 *
 * Taken: RTM_NEWROUTE and RTM_DELROUTE of IPv4 and IPv6, RTM_NEWNEXTHOP, RTM_DELNEXTHOP.
 * Taken to be shown only: label routes (AF_MPLS), and the bridge neighbors of EVPN; they are
 * routes of table FPM_TABLE_NONE, each with one or more hops that have an encapsulation.
 * All else is skipped by length and counted. A message that is cut or contradicts itself
 * is skipped as a whole; half a message never becomes an event.
 *
 * What the events promise beyond base/fpm_event.h:
 *   - rtm_table 0 means main, as the kernel has it;
 *   - a route with RTA_NH_ID has no hops; a unicast route with neither (zebra sends one when
 *     no next hop is usable) is an upsert with nhid 0 and n_hops 0: nothing is reachable;
 *   - FPM_ROUTE of another type than unicast has neither, whatever the message said.
 */
#ifndef FPM_DECODE_H
#define FPM_DECODE_H

#include "base/fpm_event.h"
#include "fpm/frame.h"

/* What came by; the caller's, only ever added to. Names as in struct fpm_status. */
struct fpm_tally {
	uint64_t messages;
	uint64_t routes, route_dels, nexthops, nexthop_dels;
	uint64_t labels, macs; /* of routes and route_dels: no IP */
	uint64_t skipped_type, skipped_route, malformed;
	uint32_t nl_pid; /* last nlmsg_pid that was not 0; set before its event is given */
};

/*
 * Takes one event. It owns ev->hops from the call on, also when it returns an error;
 * `ev` itself is only lent. Returns 0 or -errno, which ends the decoding.
 */
typedef int fpm_sink(void *arg, const struct fpm_event *ev);

/*
 * Decode all messages of `frame`, in order, into `sink`.    [any thread, no side effects]
 *
 * frame  any octets at any alignment; only frame->len of them are read.
 *
 * Returns 0, -ENOMEM, or the sink's error; malformed input is counted, not returned.
 */
int fpm_decode(const struct fpm_frame *frame, fpm_sink *sink, void *arg,
	       struct fpm_tally *tally);

#endif
