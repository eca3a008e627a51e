/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Find groups of next hops of type resilient that have an idle timer. Linux moves a bucket
 * of flows to an added next hop only when no packet has used the bucket for that time
 * (net/ipv4/nexthop.c). The dataplane does not know when a flow was last used: it moves the
 * share of the added next hop at once. [warn]
 */
#include <errno.h>
#include <linux/netlink.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>
#include <unistd.h>

#include "netlink/attributes.h"
#include "warn/impl.h"

static bool
has_idle_timer(const struct nlmsghdr *nlh)
{
	size_t have = mnl_nlmsg_get_payload_len(nlh);
	const struct nlattr *group, *timer;
	uint32_t idle; /* in units of 1/USER_HZ s; 0: buckets move at once */

	if (nlh->nlmsg_type != RTM_NEWNEXTHOP || have < sizeof(struct nhmsg))
		return false;
	group = attrs_find((const uint8_t *)mnl_nlmsg_get_payload(nlh) +
				   sizeof(struct nhmsg),
			   have - sizeof(struct nhmsg), NHA_RES_GROUP);
	timer = attr_find_in(group, NHA_RES_GROUP_IDLE_TIMER);
	return timer != NULL && attr_copy(timer, &idle, sizeof(idle)) == 0 && idle != 0;
}

static void
on_group(struct warn *w, const struct nlmsghdr *nlh, void *ctx)
{
	bool *found = ctx;

	*found = *found || has_idle_timer(nlh);
}

void
nexthops_scan(struct warn *w)
{
	struct {
		struct nlmsghdr nlh;
		struct nhmsg nhm;
		struct nlattr groups; /* requests groups only */
	} request = {.nlh = {.nlmsg_len = sizeof(request),
			     .nlmsg_type = RTM_GETNEXTHOP,
			     .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		     .groups = {.nla_len = NLA_HDRLEN, .nla_type = NHA_GROUPS}};
	bool found = false;
	int fd = ask_open(NETLINK_ROUTE), rc = fd;

	if (fd >= 0) {
		rc = ask_dump(w, fd, &request.nlh, on_group, &found);
		close(fd);
	}
	if (rc < 0 && rc != -EOPNOTSUPP) /* Linux before 5.3 has no next-hop objects */
		unread_add(w, "groups of next hops", rc);
	if (found)
		list_add(&w->list, WARNING_RESILIENT,
			 "resilient groups of next hops with an idle timer",
			 "Linux moves flows to an added next hop only after they were idle "
			 "for this time.",
			 "An added next hop gets its share of the flows at once.");
}
