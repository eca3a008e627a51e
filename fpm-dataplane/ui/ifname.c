/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ifname: alternative names of interfaces (`ip link property add dev wan0 altname uplink`).
 * The daemon keeps none of these names: it asks the kernel when a client names an
 * interface. Runs in ui.
 */
#include <errno.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "tap-bridge/netns.h"
#include "ui/internal.h"

#define ANSWER_MS    500u         /* longest wait for the kernel */
#define ANSWER_BYTES (192u << 10) /* more than two lists of 64 KiB (tap-bridge/kmon.c) */

/* Request the interface with this alternative or primary name. */
static int
link_request(int fd, const char *name)
{
	struct {
		struct nlmsghdr nlh;
		struct ifinfomsg info;
		struct rtattr mask_attr;
		uint32_t mask;
		struct rtattr name_attr;
		char name[UI_NAME_MAX];
	} request = {
		.nlh = {.nlmsg_type = RTM_GETLINK, .nlmsg_flags = NLM_F_REQUEST},
		.mask_attr = {.rta_len = sizeof(request.mask_attr) + sizeof(request.mask),
			      .rta_type = IFLA_EXT_MASK},
		.mask = RTEXT_FILTER_SKIP_STATS,
		.name_attr = {.rta_type = IFLA_ALT_IFNAME}};
	size_t n = (size_t)snprintf(request.name, sizeof(request.name), "%s", name) + 1;

	request.name_attr.rta_len = (uint16_t)(sizeof(request.name_attr) + n);
	request.nlh.nlmsg_len = (uint32_t)(offsetof(typeof(request), name_attr) +
					   request.name_attr.rta_len);
	return send(fd, &request, request.nlh.nlmsg_len, 0) < 0 ? -errno : 0;
}

/*
 * Copy the primary name of the interface in the answer; "": the kernel has no such
 * interface.
 */
static void
link_answer(int fd, char own[IFNAMSIZ])
{
	static uint8_t answer[ANSWER_BYTES] __attribute__((aligned(NLMSG_ALIGNTO)));
	const struct nlmsghdr *nlh = (const struct nlmsghdr *)answer;
	ssize_t n = recv(fd, answer, sizeof(answer), 0);
	const struct rtattr *a;
	int left;

	own[0] = '\0';
	if (n < 0 || !NLMSG_OK(nlh, (size_t)n) || nlh->nlmsg_type != RTM_NEWLINK)
		return;
	a = IFLA_RTA(NLMSG_DATA(nlh));
	left = (int)IFLA_PAYLOAD(nlh);
	for (; RTA_OK(a, left); a = RTA_NEXT(a, left))
		if (a->rta_type == IFLA_IFNAME)
			snprintf(own, IFNAMSIZ, "%.*s", (int)RTA_PAYLOAD(a),
				 (const char *)RTA_DATA(a));
}

void
ifname_own(const char *netns, char *name, size_t size)
{
	const struct timeval wait = {.tv_usec = ANSWER_MS * 1000};
	char own[IFNAMSIZ] = "";
	int fd;

	if (name[0] == '\0' || strlen(name) >= UI_NAME_MAX)
		return;
	fd = netns_socket(netns, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	if (fd < 0)
		return;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	if (link_request(fd, name) == 0)
		link_answer(fd, own);
	close(fd);
	if (own[0] != '\0')
		snprintf(name, size, "%s", own);
}
