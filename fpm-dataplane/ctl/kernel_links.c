/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl/kernel_links.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

struct reader {
	struct kernel_link *link;
	int n, room;
};

static void
text_take(const struct nlattr *a, char *out, size_t size)
{
	size_t len = mnl_attr_get_payload_len(a);

	len = strnlen(mnl_attr_get_payload(a), len < size ? len : size - 1);
	memcpy(out, mnl_attr_get_payload(a), len);
	out[len] = '\0';
}

/* Copy an attribute that is shorter with older kernels, and longer with newer kernels. */
static void
octets_take(const struct nlattr *a, void *out, size_t size)
{
	size_t len = mnl_attr_get_payload_len(a);

	memcpy(out, mnl_attr_get_payload(a), len < size ? len : size);
}

static int
info_take(const struct nlattr *a, void *data)
{
	struct kernel_link *link = data;

	if (mnl_attr_get_type(a) == IFLA_INFO_KIND)
		text_take(a, link->kind, sizeof(link->kind));
	return MNL_CB_OK;
}

static int
attribute_take(const struct nlattr *a, void *data)
{
	struct kernel_link *link = data;
	uint32_t word = 0;

	switch (mnl_attr_get_type(a)) {
	case IFLA_IFNAME:
		text_take(a, link->name, sizeof(link->name));
		break;
	case IFLA_IFALIAS:
		text_take(a, link->alias, sizeof(link->alias));
		break;
	case IFLA_ADDRESS:
		link->mac_bytes = (uint8_t)mnl_attr_get_payload_len(a);
		if (link->mac_bytes > sizeof(link->mac))
			link->mac_bytes = sizeof(link->mac);
		octets_take(a, link->mac, sizeof(link->mac));
		break;
	case IFLA_MTU:
		octets_take(a, &link->mtu_bytes, sizeof(link->mtu_bytes));
		break;
	case IFLA_LINK:
		octets_take(a, &link->below, sizeof(link->below));
		break;
	case IFLA_LINK_NETNSID: /* IFLA_LINK is an index in that namespace */
		link->abroad = true;
		break;
	case IFLA_OPERSTATE:
		octets_take(a, &link->operstate, sizeof(link->operstate));
		break;
	case IFLA_PROMISCUITY:
		octets_take(a, &word, sizeof(word));
		link->promiscuous = word != 0;
		break;
	case IFLA_STATS64:
		octets_take(a, &link->count, sizeof(link->count));
		break;
	case IFLA_LINKINFO:
		return mnl_attr_parse_nested(a, info_take, link);
	default:
		break;
	}
	return MNL_CB_OK;
}

static int
link_take(const struct nlmsghdr *h, void *data)
{
	const struct ifinfomsg *info = mnl_nlmsg_get_payload(h);
	struct reader *r = data;
	struct kernel_link *link;

	if (h->nlmsg_type != RTM_NEWLINK)
		return MNL_CB_OK;
	if (r->n == r->room) {
		int room = r->room == 0 ? 64 : 2 * r->room;

		link = realloc(r->link, (size_t)room * sizeof(*link));
		if (link == NULL)
			return MNL_CB_ERROR;
		r->link = link;
		r->room = room;
	}
	link = &r->link[r->n++];
	*link = (struct kernel_link){.ifindex = (uint32_t)info->ifi_index,
				     .flags = info->ifi_flags,
				     .hardware = info->ifi_type};
	if (mnl_attr_parse(h, sizeof(*info), attribute_take, link) < 0)
		return MNL_CB_ERROR;
	/* The attribute of a veth names its peer, which is not a device below it. */
	if (link->abroad ||
	    (strcmp(link->kind, "vlan") != 0 && strcmp(link->kind, "macvlan") != 0))
		link->below = 0;
	return MNL_CB_OK;
}

static int
ifindex_order(const void *a, const void *b)
{
	const struct kernel_link *x = a, *y = b;

	return (x->ifindex > y->ifindex) - (x->ifindex < y->ifindex);
}

/*
 * Request all interfaces, and read the answer. Returns 0 or -errno; -EINTR: interfaces
 * changed meanwhile, so the answer may be incomplete.
 */
static int
links_dump(struct mnl_socket *sock, unsigned int seq, struct reader *r)
{
	char buf[32768];
	struct nlmsghdr *h = mnl_nlmsg_put_header(buf);
	struct ifinfomsg *info;
	ssize_t len;
	int rc = MNL_CB_OK;

	h->nlmsg_type = RTM_GETLINK;
	h->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	h->nlmsg_seq = seq;
	info = mnl_nlmsg_put_extra_header(h, sizeof(*info));
	info->ifi_family = AF_UNSPEC;
	if (mnl_socket_sendto(sock, h, h->nlmsg_len) < 0)
		return -errno;
	while (rc > MNL_CB_STOP) {
		len = mnl_socket_recvfrom(sock, buf, sizeof(buf));
		if (len < 0)
			return -errno;
		rc = mnl_cb_run(buf, (size_t)len, seq, mnl_socket_get_portid(sock),
				link_take, r);
	}
	return rc < 0 ? -errno : 0;
}

#define TRIES 5 /* until no interface changes during the answer */

int
kernel_links(struct kernel_link **links)
{
	struct mnl_socket *sock = mnl_socket_open(NETLINK_ROUTE);
	struct reader r = {0};
	int rc;

	*links = NULL;
	if (sock == NULL)
		return -errno;
	rc = mnl_socket_bind(sock, 0, MNL_SOCKET_AUTOPID) < 0 ? -errno : 1;
	for (unsigned int i = 0; (rc == 1 || rc == -EINTR) && i < TRIES; i++) {
		r.n = 0;
		rc = links_dump(sock, i + 1, &r);
	}
	mnl_socket_close(sock);
	if (rc < 0) {
		free(r.link);
		return rc;
	}
	if (r.n > 0)
		qsort(r.link, (size_t)r.n, sizeof(*r.link), ifindex_order);
	*links = r.link;
	return r.n;
}
