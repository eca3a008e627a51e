/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hops: ways out, in the four shapes netlink has for them. Private to fpm/.
 *
 * All return 0, -EBADMSG (the message is skipped and counted) or -ENOMEM, and on error leave
 * ev->hops as it was.
 */
#ifndef FPM_HOPS_H
#define FPM_HOPS_H

#include "base/fpm_event.h"
#include "fpm/attr.h"

/* AF_INET or AF_INET6 to 4 or 6; any other to 0. */
uint8_t family_of_af(unsigned int af);

/* RTA_GATEWAY, _VIA, _OIF, _ENCAP* of a route beside its `family` and rtm_flags. */
int hops_inline(struct fpm_event *ev, const struct attrs *attrs, uint8_t family,
		unsigned int flags);

/* RTA_MULTIPATH of a route of `family`. */
int hops_multipath(struct fpm_event *ev, const struct nlattr *multipath, uint8_t family);

/* NHA_GATEWAY, _OIF, _ENCAP* of a next hop object. */
int hops_nexthop(struct fpm_event *ev, const struct attrs *attrs, uint8_t family,
		 unsigned int flags);

/* NHA_GROUP: members. */
int hops_group(struct fpm_event *ev, const struct nlattr *group);

#endif
