/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kmon_operstate: what a carrier means is known at once, and not when the kernel's linkwatch has
 * its next turn. Runs in the monitor's thread, also from within its callbacks; never waits.
 */
#include <errno.h>
#include <linux/rtnetlink.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>

#include "tap-bridge/kmon_impl.h"

/* IF_OPER_* of linux/if.h, which cannot be had beside net/if.h. */
enum { OPER_DORMANT = 5, OPER_UP = 6 };

int
kmon_operstate(struct kmon *km, unsigned int ifindex, bool up)
{
	/*
	 * Of a link in another state than these two the kernel keeps what it has, and of these
	 * linkwatch, when it comes, makes what the carrier says: nothing has to be taken back.
	 */
	struct ifinfomsg info = {.ifi_family = AF_UNSPEC, .ifi_index = (int)ifindex};
	struct nl_msg *msg = nlmsg_alloc_simple(RTM_SETLINK, NLM_F_REQUEST | NLM_F_ACK);
	uint32_t answer[64];

	if (msg == NULL)
		return -ENOMEM;
	if (nlmsg_append(msg, &info, sizeof(info), NLMSG_ALIGNTO) < 0 ||
	    nla_put_u8(msg, IFLA_OPERSTATE, up ? OPER_UP : OPER_DORMANT) < 0) {
		nlmsg_free(msg);
		return -ENOMEM;
	}
	return kmon_exchange(km, msg, answer, sizeof(answer));
}
