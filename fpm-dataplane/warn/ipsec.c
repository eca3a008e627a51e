/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Find IPsec policies for forwarded packets. The kernel reports their number, so no dump is
 * needed. If there is any policy, the kernel handles tunnels, because their outer packets
 * may have to be encrypted, or may be accepted only if encrypted. [warn]
 */
#include <errno.h>
#include <linux/netlink.h>
#include <linux/xfrm.h>
#include <string.h>
#include <unistd.h>

#include "fib/fib.h"
#include "netlink/attributes.h"
#include "warn/warn_impl.h"

static void
tunnels_allow(const struct warn *w, bool allowed)
{
	atomic_store_explicit(&w->conf.fib->tunnels_state,
			      allowed ? FIB_TUNNELS_ALLOWED : FIB_TUNNELS_IPSEC,
			      memory_order_relaxed);
}

static void
on_count(struct warn *w, const struct nlmsghdr *nlh, void *ctx)
{
	static const char in_linux[] =
		"Linux encrypts, decrypts or drops packets in transit by the policies.";
	static const char here[] = "Forwarded packets pass without IPsec.";
	size_t have = mnl_nlmsg_get_payload_len(nlh);
	struct xfrmu_spdinfo n = {0};
	const struct nlattr *a;

	if (nlh->nlmsg_type != XFRM_MSG_NEWSPDINFO || have < sizeof(uint32_t))
		return;
	a = attrs_find((const uint8_t *)mnl_nlmsg_get_payload(nlh) + sizeof(uint32_t),
		       have - sizeof(uint32_t), XFRMA_SPD_INFO);
	if (a == NULL || attr_copy(a, &n, sizeof(n)) < 0)
		return;
	tunnels_allow(w, n.incnt + n.outcnt + n.fwdcnt == 0);
	if (n.fwdcnt > 0)
		list_add(&w->list, WARNING_IPSEC, "policies of direction fwd", in_linux,
			 here);
	if (n.outcnt > 0)
		list_add(&w->list, WARNING_IPSEC, "policies of direction out", in_linux,
			 here);
}

void
ipsec_scan(struct warn *w)
{
	struct {
		struct nlmsghdr nlh;
		uint32_t flags;
	} request = {.nlh = {.nlmsg_len = sizeof(request),
			     .nlmsg_type = XFRM_MSG_GETSPDINFO,
			     .nlmsg_flags = NLM_F_REQUEST},
		     .flags = UINT32_MAX};
	int fd = ask_open(NETLINK_XFRM), rc = fd;

	if (fd >= 0) {
		rc = ask_dump(w, fd, &request.nlh, on_count, NULL);
		close(fd);
	}
	if (rc == -EPROTONOSUPPORT) /* a kernel without IPsec */
		tunnels_allow(w, true);
	else if (rc < 0)
		unread_add(w, "IPsec policies", rc);
}
