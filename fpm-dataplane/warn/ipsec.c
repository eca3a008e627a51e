/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Find IPsec policies for forwarded packets. No dump is needed, because the kernel reports
 * the number of policies, and its default for packets without a policy. If there is any
 * policy, or the default is to block, the kernel handles tunnels, because their outer
 * packets may have to be encrypted, or may be accepted only if encrypted. [warn]
 */
#include <errno.h>
#include <linux/netlink.h>
#include <linux/xfrm.h>
#include <string.h>
#include <unistd.h>

#include "fib/fib.h"
#include "netlink/attributes.h"
#include "warn/impl.h"

static void
tunnels_allow(const struct warn *w, bool allowed)
{
	atomic_store_explicit(&w->conf.fib->tunnels_state,
			      allowed ? FIB_TUNNELS_ALLOWED : FIB_TUNNELS_IPSEC,
			      memory_order_relaxed);
}

static void
on_default(struct warn *w, const struct nlmsghdr *nlh, void *ctx)
{
	struct xfrm_userpolicy_default is;
	bool *blocks = ctx;

	if (nlh->nlmsg_type != XFRM_MSG_GETDEFAULT ||
	    mnl_nlmsg_get_payload_len(nlh) < sizeof(is))
		return;
	memcpy(&is, mnl_nlmsg_get_payload(nlh), sizeof(is));
	*blocks = is.in == XFRM_USERPOLICY_BLOCK || is.fwd == XFRM_USERPOLICY_BLOCK ||
		  is.out == XFRM_USERPOLICY_BLOCK;
	if (is.fwd == XFRM_USERPOLICY_BLOCK || is.out == XFRM_USERPOLICY_BLOCK)
		list_add(&w->list, WARNING_IPSEC, "default policy block",
			 "Linux drops packets in transit for which there is no policy.",
			 "They pass.");
}

/*
 * Return true if the kernel blocks packets without a policy in some direction. Linux before
 * 5.15 refuses the request; the result is then false.
 */
static bool
default_blocks(struct warn *w, int fd)
{
	struct {
		struct nlmsghdr nlh;
		struct xfrm_userpolicy_default is;
	} request = {.nlh = {.nlmsg_len = NLMSG_LENGTH(sizeof(request.is)),
			     .nlmsg_type = XFRM_MSG_GETDEFAULT,
			     .nlmsg_flags = NLM_F_REQUEST}};
	bool blocks = false;

	(void)ask_dump(w, fd, &request.nlh, on_default, &blocks);
	return blocks;
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
	tunnels_allow(w, n.incnt + n.outcnt + n.fwdcnt == 0 && !*(const bool *)ctx);
	w->outer_asked.ipsec = n.incnt + n.outcnt + n.fwdcnt > 0;
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
		bool blocks = default_blocks(w, fd);

		rc = ask_dump(w, fd, &request.nlh, on_count, &blocks);
		close(fd);
	}
	if (rc == -EPROTONOSUPPORT) { /* a kernel without IPsec */
		tunnels_allow(w, true);
		w->outer_asked.ipsec = false;
	} else if (rc < 0) {
		unread_add(w, "IPsec policies", rc);
	}
}
