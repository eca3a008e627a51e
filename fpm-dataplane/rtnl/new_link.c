/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * New links, whose events are no cause of a dump. [rtnl]
 *
 * The kernel deletes routes and next-hop objects without an event when a link is set down,
 * loses its carrier or is deleted. A new link begins down and without carrier. Before it is
 * up for the first time it has no such routes, and before it has a carrier for the first
 * time it has no next-hop objects. So thousands of new links lead to no dump.
 *
 * The kernel may announce a carrier late, or not at all if it is lost again. So after the
 * event of a next-hop object no link counts as new.
 */
#include <linux/if.h>
#include <linux/rtnetlink.h>

#include "rtnl/impl.h"

/* Return the record of a new link; NULL: the link is not new. */
static struct new_link *
new_link_find(struct rtnl *r, uint32_t ifindex)
{
	struct new_link *l = &r->new_link[ifindex % NEW_LINKS];

	return l->ifindex == ifindex && l->era == r->new_link_era ? l : NULL;
}

void
new_links_forget(struct rtnl *r)
{
	r->new_link_era++;
}

bool
link_may_have_revived(const struct rtnl *r, const struct nlmsghdr *nlh)
{
	const struct ifinfomsg *info = mnl_nlmsg_get_payload(nlh);

	return r->has_dead && (info->ifi_flags & IFF_UP) != 0;
}

bool
link_may_have_lost(struct rtnl *r, const struct nlmsghdr *nlh)
{
	const struct ifinfomsg *info = mnl_nlmsg_get_payload(nlh);
	uint32_t ifindex = (uint32_t)info->ifi_index;
	bool up = (info->ifi_flags & IFF_UP) != 0;
	bool carrier = up && (info->ifi_flags & IFF_LOWER_UP) != 0;
	struct new_link *l;
	bool was_up;

	/* The kernel reports a new link as changed in all flags. */
	if (nlh->nlmsg_type == RTM_NEWLINK && info->ifi_change == UINT32_MAX)
		r->new_link[ifindex % NEW_LINKS] =
			(struct new_link){.ifindex = ifindex, .era = r->new_link_era};
	l = new_link_find(r, ifindex);
	if (l == NULL)
		return nlh->nlmsg_type == RTM_DELLINK || !carrier;
	was_up = l->was_up;
	l->was_up |= up;
	if (carrier || nlh->nlmsg_type == RTM_DELLINK)
		l->ifindex = 0;
	return nlh->nlmsg_type == RTM_DELLINK ? was_up || carrier : !up && was_up;
}
