/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Deletions while Linux answers a dump of IPv6 routes or of rules: they can make it skip
 * existing routes or rules (dump.c). A third rtnetlink socket counts them. The socket of
 * events cannot: its filter drops zebra's routes, and its messages wait until the dump
 * ends. [rtnl]
 *
 * Linux reports each deleted IPv6 route, with two exceptions. If the sysctl
 * net.ipv6.route.skip_notify_on_dev_down is 1, only the event of a link that is set down
 * shows that routes were deleted. If net.ipv4.nexthop_compat_mode is 0, only the event of a
 * deleted next-hop object does. The number of routes is unknown then.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include "rtnl/impl.h"

static const int group[] = {RTNLGRP_IPV6_ROUTE, RTNLGRP_IPV4_RULE, RTNLGRP_IPV6_RULE,
			    RTNLGRP_LINK, RTNLGRP_NEXTHOP};

/* Join or leave the multicast groups. Returns 0 or -errno. */
static int
changes_membership(const struct rtnl *r, int option)
{
	for (unsigned int i = 0; i < sizeof(group) / sizeof(group[0]); i++)
		if (setsockopt(r->changes, SOL_NETLINK, option, &group[i],
			       sizeof(group[i])) < 0 &&
		    group[i] != RTNLGRP_NEXTHOP) /* Linux before 5.3 */
			return -errno;
	return 0;
}

/*
 * Return the number of routes or rules that an event shows as deleted; CHANGES_UNKNOWN: it
 * shows deletions, but not their number.
 */
static uint32_t
message_deletions(const struct nlmsghdr *nlh)
{
	const struct ifinfomsg *link = mnl_nlmsg_get_payload(nlh);

	switch (nlh->nlmsg_type) {
	case RTM_DELROUTE:
	case RTM_DELRULE:
		return 1;
	case RTM_DELLINK:
	case RTM_DELNEXTHOP:
		return CHANGES_UNKNOWN;
	case RTM_NEWLINK:
		/* The event of a new link has all bits of ifi_change. */
		return mnl_nlmsg_get_payload_len(nlh) >= sizeof(*link) &&
				       (link->ifi_flags & IFF_UP) == 0 &&
				       (link->ifi_change & IFF_UP) != 0 &&
				       link->ifi_change != UINT32_MAX
			       ? CHANGES_UNKNOWN
			       : 0;
	default:
		return 0;
	}
}

/* Read the waiting events. Returns the number of deletions, or CHANGES_UNKNOWN. */
static uint32_t
changes_read(const struct rtnl *r)
{
	_Alignas(struct nlmsghdr)
		uint8_t buf[sizeof(struct nlmsghdr) + sizeof(struct ifinfomsg)];
	const struct nlmsghdr *nlh = (const struct nlmsghdr *)buf;
	uint32_t n = 0;

	for (;;) {
		/* The start of a message suffices; Linux sends one in a datagram. */
		ssize_t len = recv(r->changes, buf, sizeof(buf), MSG_DONTWAIT);
		uint32_t more;

		if (len < 0 && errno == EINTR)
			continue;
		if (len < 0 && errno == EAGAIN)
			return n;
		if (len < (ssize_t)sizeof(*nlh)) {
			n = CHANGES_UNKNOWN; /* events were lost */
			continue;
		}
		more = message_deletions(nlh);
		n = n == CHANGES_UNKNOWN || more == CHANGES_UNKNOWN ? CHANGES_UNKNOWN
								    : n + more;
	}
}

int
changes_begin(struct rtnl *r)
{
	(void)changes_read(r); /* of the last answer that was given up */
	return changes_membership(r, NETLINK_ADD_MEMBERSHIP);
}

uint32_t
changes_end(struct rtnl *r)
{
	(void)changes_membership(r, NETLINK_DROP_MEMBERSHIP);
	return changes_read(r);
}
