/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl/kernel_links.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/kernel_dump.h"

/* Linux 6.17 */
#define FORCE_FORWARDING (DEVCONF_ACCEPT_RA_MIN_LFT + 1)

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

/* Take IFLA_INFO_DATA of a VLAN or macvlan; the number of both attributes is 1. */
static int
info_data_take(const struct nlattr *a, void *data)
{
	struct kernel_link *link = data;

	if (mnl_attr_get_type(a) == IFLA_VLAN_ID && strcmp(link->kind, "vlan") == 0)
		octets_take(a, &link->vlan_id, sizeof(link->vlan_id));
	if (mnl_attr_get_type(a) == IFLA_MACVLAN_MODE && strcmp(link->kind, "macvlan") == 0)
		octets_take(a, &link->macvlan_mode, sizeof(link->macvlan_mode));
	return MNL_CB_OK;
}

static int
info_take(const struct nlattr *a, void *data)
{
	struct kernel_link *link = data;

	if (mnl_attr_get_type(a) == IFLA_INFO_KIND)
		text_take(a, link->kind, sizeof(link->kind));
	else if (mnl_attr_get_type(a) == IFLA_INFO_DATA)
		return mnl_attr_parse_nested(a, info_data_take, link);
	return MNL_CB_OK;
}

/* Return a value of an array of sysctls; 0: the kernel does not have this sysctl. */
static int32_t
conf_value(const struct nlattr *a, unsigned int i)
{
	int32_t value = 0;

	if (mnl_attr_get_payload_len(a) >= (i + 1) * sizeof(value))
		memcpy(&value, (const uint8_t *)mnl_attr_get_payload(a) + i * sizeof(value),
		       sizeof(value));
	return value;
}

static int
ipv4_take(const struct nlattr *a, void *data)
{
	struct kernel_link *link = data;

	if (mnl_attr_get_type(a) != IFLA_INET_CONF)
		return MNL_CB_OK;
	link->has_ipv4 = true;
	/* The first IPv4 sysctl has number 1, and is the first in the array. */
	link->forwarding4 = conf_value(a, IPV4_DEVCONF_FORWARDING - 1) != 0;
	return MNL_CB_OK;
}

static int
ipv6_take(const struct nlattr *a, void *data)
{
	struct kernel_link *link = data;

	if (mnl_attr_get_type(a) != IFLA_INET6_CONF)
		return MNL_CB_OK;
	link->has_ipv6 = true;
	link->ipv6_off = conf_value(a, DEVCONF_DISABLE_IPV6) != 0;
	link->mtu6_bytes = (uint32_t)conf_value(a, DEVCONF_MTU6);
	link->force_forwarding6 = conf_value(a, FORCE_FORWARDING) != 0;
	return MNL_CB_OK;
}

static int
family_take(const struct nlattr *a, void *data)
{
	uint16_t family = mnl_attr_get_type(a);

	return family == AF_INET    ? mnl_attr_parse_nested(a, ipv4_take, data)
	       : family == AF_INET6 ? mnl_attr_parse_nested(a, ipv6_take, data)
				    : MNL_CB_OK;
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
	case IFLA_PROTO_DOWN:
		octets_take(a, &link->proto_down, 1);
		break;
	case IFLA_AF_SPEC:
		return mnl_attr_parse_nested(a, family_take, link);
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
