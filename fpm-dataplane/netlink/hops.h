/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hops: decode next hops in the four forms that netlink has for them.
 *
 * All functions return 0, -EBADMSG (the message is skipped and counted) or -ENOMEM. On
 * error ev->hops is unchanged.
 */
#ifndef NETLINK_HOPS_H
#define NETLINK_HOPS_H

#include "base/fpm_event.h"
#include "netlink/attributes.h"

/* Convert AF_INET to 4, AF_INET6 to 6, any other value to 0. */
uint8_t family_of_af(unsigned int af);

/* Decode RTA_GATEWAY, _VIA, _OIF, _ENCAP* of a route of `family` with rtm_flags `flags`. */
int hops_inline(struct fpm_event *ev, const struct attrs *attrs, uint8_t family,
		unsigned int flags);

/* Decode RTA_MULTIPATH of a route of `family`. */
int hops_multipath(struct fpm_event *ev, const struct nlattr *multipath, uint8_t family);

/* Decode NHA_GATEWAY, _OIF, _ENCAP* of a next hop object. */
int hops_nexthop(struct fpm_event *ev, const struct attrs *attrs, uint8_t family,
		 unsigned int flags);

/* Decode the members in NHA_GROUP. */
int hops_group(struct fpm_event *ev, const struct nlattr *group);

#endif
