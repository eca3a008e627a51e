/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl/kernel_links.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/kernel_dump.h"

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
link_take(const struct nlmsghdr *h, void *ctx)
{
	const struct ifinfomsg *info = mnl_nlmsg_get_payload(h);
	struct reader *r = ctx;
	struct kernel_link *link;

	if (h->nlmsg_type != RTM_NEWLINK)
		return 0;
	if (r->n == r->room) {
		int room = r->room == 0 ? 64 : 2 * r->room;

		link = realloc(r->link, (size_t)room * sizeof(*link));
		if (link == NULL)
			return -ENOMEM;
		r->link = link;
		r->room = room;
	}
	link = &r->link[r->n++];
	*link = (struct kernel_link){.ifindex = (uint32_t)info->ifi_index,
				     .flags = info->ifi_flags,
				     .hardware = info->ifi_type};
	if (mnl_attr_parse(h, sizeof(*info), attribute_take, link) < 0)
		return -EBADMSG;
	/* The attribute of a veth names its peer, which is not a device below it. */
	if (link->abroad ||
	    (strcmp(link->kind, "vlan") != 0 && strcmp(link->kind, "macvlan") != 0))
		link->below = 0;
	return 0;
}

static int
ifindex_order(const void *a, const void *b)
{
	const struct kernel_link *x = a, *y = b;

	return (x->ifindex > y->ifindex) - (x->ifindex < y->ifindex);
}

static void
links_begin(void *ctx)
{
	struct reader *r = ctx;

	r->n = 0;
}

int
kernel_links(struct kernel_link **links)
{
	struct reader r = {0};
	const struct dump_reader to = {
		.on_begin = links_begin, .on_message = link_take, .ctx = &r};
	int rc = kernel_dump_links(&to);

	*links = NULL;
	if (rc < 0) {
		free(r.link);
		return rc;
	}
	if (r.n > 0)
		qsort(r.link, (size_t)r.n, sizeof(*r.link), ifindex_order);
	*links = r.link;
	return r.n;
}
