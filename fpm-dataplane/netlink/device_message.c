/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices, their sysctls and qdiscs; see linux/if_link.h. Any thread, no state, no log. */
#include "netlink/device_message.h"

#include <net/if.h> /* before linux/if_link.h, which defines only what net/if.h does not */
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "netlink/attributes.h"

/*
 * Return the octets after a fixed header of `size` octets; NULL: the message is truncated.
 */
static const uint8_t *
message_rest(const struct nlmsghdr *nlh, size_t size, size_t *len)
{
	size_t have = mnl_nlmsg_get_payload_len(nlh), at = MNL_ALIGN(size);

	if (nlh->nlmsg_len < MNL_NLMSG_HDRLEN || have < size)
		return NULL;
	*len = have > at ? have - at : 0;
	return (const uint8_t *)mnl_nlmsg_get_payload(nlh) + (have > at ? at : have);
}

/* Point to an array of 32-bit values in an attribute; NULL: there is none. */
static const uint8_t *
conf_array(const struct nlattr *a, uint32_t *n)
{
	*n = a == NULL ? 0 : (a->nla_len - MNL_ATTR_HDRLEN) / sizeof(uint32_t);
	return *n == 0 ? NULL : (const uint8_t *)a + MNL_ATTR_HDRLEN;
}

static uint32_t
conf_value(const uint8_t *array, uint32_t n, unsigned int at)
{
	uint32_t value = 0;

	if (at < n)
		memcpy(&value, array + at * sizeof(value), sizeof(value));
	return value;
}

int
device_message_decode(const struct nlmsghdr *nlh, struct device_message *m)
{
	const struct ifinfomsg *info = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *a, *spec;
	uint8_t xdp = 0, down = 0;
	size_t len;
	const uint8_t *at = message_rest(nlh, sizeof(*info), &len);

	*m = (struct device_message){0};
	if (at == NULL)
		return -EBADMSG;
	m->ifindex = (uint32_t)info->ifi_index;
	m->admin_up = (info->ifi_flags & IFF_UP) != 0;
	attr_text(attrs_find(at, len, IFLA_IFNAME), m->name, sizeof(m->name));
	a = attrs_find(at, len, IFLA_MASTER);
	if (a != NULL && attr_copy(a, &m->master, sizeof(m->master)) < 0)
		return -EBADMSG;
	spec = attrs_find(at, len, IFLA_LINKINFO);
	attr_text(attr_find_in(spec, IFLA_INFO_SLAVE_KIND), m->master_kind,
		  sizeof(m->master_kind));
	attr_text(attr_find_in(spec, IFLA_INFO_KIND), m->kind, sizeof(m->kind));
	m->egress_qos = strcmp(m->kind, "vlan") == 0 &&
			attr_find_in(attr_find_in(spec, IFLA_INFO_DATA),
				     IFLA_VLAN_EGRESS_QOS) != NULL;
	if (strcmp(m->kind, "macvlan") == 0 || strcmp(m->kind, "macvtap") == 0) {
		a = attr_find_in(attr_find_in(spec, IFLA_INFO_DATA), IFLA_MACVLAN_MODE);
		if (a != NULL)
			(void)attr_copy(a, &m->macvlan_mode, sizeof(m->macvlan_mode));
	}
	a = attrs_find(at, len, IFLA_TXQLEN);
	if (a != NULL && attr_copy(a, &m->txqlen, sizeof(m->txqlen)) < 0)
		return -EBADMSG;
	a = attr_find_in(attrs_find(at, len, IFLA_XDP), IFLA_XDP_ATTACHED);
	if (a != NULL && attr_copy(a, &xdp, sizeof(xdp)) < 0)
		return -EBADMSG;
	m->xdp = xdp != XDP_ATTACHED_NONE;
	a = attrs_find(at, len, IFLA_LINK);
	/* With IFLA_LINK_NETNSID the link below is in another namespace. */
	if (attrs_find(at, len, IFLA_LINK_NETNSID) != NULL)
		a = NULL;
	if (a != NULL && attr_copy(a, &m->on, sizeof(m->on)) < 0)
		return -EBADMSG;
	a = attrs_find(at, len, IFLA_ADDRESS);
	if (a != NULL)
		(void)attr_copy(a, m->mac, sizeof(m->mac));
	a = attrs_find(at, len, IFLA_PROTO_DOWN);
	if (a != NULL && attr_copy(a, &down, sizeof(down)) < 0)
		return -EBADMSG;
	m->protodown = down != 0;
	a = attr_find_in(attrs_find(at, len, IFLA_PROTO_DOWN_REASON),
			 IFLA_PROTO_DOWN_REASON_VALUE);
	if (a != NULL && attr_copy(a, &m->protodown_by, sizeof(m->protodown_by)) < 0)
		return -EBADMSG;
	spec = attrs_find(at, len, IFLA_AF_SPEC);
	m->conf4 = conf_array(attr_find_in(attr_find_in(spec, AF_INET), IFLA_INET_CONF),
			      &m->n_conf4);
	m->conf6 = conf_array(attr_find_in(attr_find_in(spec, AF_INET6), IFLA_INET6_CONF),
			      &m->n_conf6);
	return 0;
}

uint32_t
device_conf4(const struct device_message *m, unsigned int key)
{
	return key == 0 ? 0 : conf_value(m->conf4, m->n_conf4, key - 1);
}

uint32_t
device_conf6(const struct device_message *m, unsigned int key)
{
	return conf_value(m->conf6, m->n_conf6, key);
}

int
mac_message_decode(const struct nlmsghdr *nlh, struct mac_message *m)
{
	const struct ndmsg *nd = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *a;
	size_t len;
	const uint8_t *at = message_rest(nlh, sizeof(*nd), &len);

	*m = (struct mac_message){0};
	if (at == NULL || nd->ndm_family != AF_BRIDGE)
		return -EBADMSG;
	m->ifindex = (uint32_t)nd->ndm_ifindex;
	m->self = (nd->ndm_flags & NTF_SELF) != 0;
	a = attrs_find(at, len, NDA_LLADDR);
	return a == NULL ? -EBADMSG : attr_copy(a, m->mac, sizeof(m->mac));
}

int
qdisc_message_decode(const struct nlmsghdr *nlh, struct qdisc_message *m)
{
	const struct tcmsg *tc = mnl_nlmsg_get_payload(nlh);
	size_t len;
	const uint8_t *at = message_rest(nlh, sizeof(*tc), &len);

	*m = (struct qdisc_message){0};
	if (at == NULL)
		return -EBADMSG;
	m->ifindex = (uint32_t)tc->tcm_ifindex;
	m->handle = tc->tcm_handle;
	m->parent = tc->tcm_parent;
	attr_text(attrs_find(at, len, TCA_KIND), m->kind, sizeof(m->kind));
	return 0;
}
