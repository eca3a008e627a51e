/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decode one netlink message of zebra: a route, a next hop, a label or a MAC address. Any
 * thread, no state, no log. It trusts no length in the message; tests/fuzz/fuzz_fpm.c
 * checks that.
 */
#include "netlink/message.h"

#include <arpa/inet.h>
#include <linux/neighbour.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>

#include "base/mpls_entry.h"
#include "netlink/hops.h"

int
message_attrs(const struct nlmsghdr *nlh, size_t fixed, struct attrs *attrs)
{
	size_t len = nlh->nlmsg_len - MNL_NLMSG_HDRLEN;

	if (len < fixed)
		return -EBADMSG;
	return attrs_index(attrs, (const uint8_t *)mnl_nlmsg_get_payload(nlh) + fixed,
			   len - fixed);
}

int
message_prefix(struct prefix *p, const struct attrs *attrs, uint8_t family, uint8_t len)
{
	p->family = family;
	p->len = len;
	if (len > family_bits(family))
		return -EBADMSG;
	if (!attrs_have(attrs, RTA_DST))
		return len == 0 ? 0 : -EBADMSG;
	if (attr_copy(attr_of(attrs, RTA_DST), p->addr.octet, family_octets(family)) < 0)
		return -EBADMSG;
	return prefix_has_host_bits(p) ? -EBADMSG : 0;
}

int
message_mtu(struct fpm_event *ev, const struct nlattr *metrics)
{
	struct attrs nested;

	if (attrs_index(&nested, mnl_attr_get_payload(metrics),
			mnl_attr_get_payload_len(metrics)) < 0)
		return -EBADMSG;
	return attrs_copy(&nested, RTAX_MTU, &ev->mtu_bytes, sizeof(ev->mtu_bytes));
}

int
message_hops(struct fpm_event *ev, const struct attrs *attrs, unsigned int flags)
{
	if (attrs_copy(attrs, RTA_NH_ID, &ev->nhid, sizeof(ev->nhid)) < 0)
		return -EBADMSG;
	if (ev->nhid != 0)
		return 0;
	if (attrs_have(attrs, RTA_MULTIPATH))
		return hops_multipath(ev, attr_of(attrs, RTA_MULTIPATH), ev->prefix.family);
	return hops_inline(ev, attrs, ev->prefix.family, flags);
}

/* Return true if routes of this type are decoded. Deletes carry type 0. */
static bool
route_type_taken(uint8_t type, bool del)
{
	return type == RTN_UNICAST || type == RTN_BLACKHOLE || type == RTN_UNREACHABLE ||
	       type == RTN_PROHIBIT || (del && type == RTN_UNSPEC);
}

static void
key_put_u32(uint8_t *at, uint32_t v)
{
	v = htonl(v);
	memcpy(at, &v, sizeof(v));
}

/*
 * Set the encapsulation of all hops of `ev`; add a hop if it has none. Returns 0 or
 * -ENOMEM.
 */
static int
hops_encapsulate(struct fpm_event *ev, enum hop_encap encap)
{
	if (ev->n_hops == 0) {
		ev->hops = calloc(1, sizeof(*ev->hops));
		if (ev->hops == NULL)
			return -ENOMEM;
		ev->n_hops = 1;
		ev->hops->weight = 1;
	}
	for (unsigned int i = 0; i < ev->n_hops; i++)
		ev->hops[i].encap = (uint8_t)encap;
	return 0;
}

int
message_label(const struct rtmsg *rtm, const struct attrs *attrs, bool del,
	      struct fpm_event *ev)
{
	uint8_t propagate = 0;
	uint32_t entry;
	int rc;

	if (rtm->rtm_dst_len != 20 ||
	    attr_copy(attr_of(attrs, RTA_DST), &entry, sizeof(entry)) < 0)
		return -EBADMSG;
	ev->kind = del ? FPM_ROUTE_DEL : FPM_ROUTE;
	ev->rtm_type = del ? RTN_UNSPEC : RTN_UNICAST;
	ev->protocol = rtm->rtm_protocol;
	ev->table = FPM_TABLE_NONE;
	ev->prefix = (struct prefix){.family = FAMILY_LABEL, .len = 32};
	key_put_u32(ev->prefix.addr.octet, ntohl(entry) >> 12);
	if (del)
		return TAKEN;
	if (attrs_copy(attrs, RTA_TTL_PROPAGATE, &propagate, sizeof(propagate)) < 0)
		return -EBADMSG;
	if (attrs_have(attrs, RTA_TTL_PROPAGATE))
		ev->label_mode = propagate != 0 ? LABEL_MODE_UNIFORM : LABEL_MODE_PIPE;
	rc = attrs_have(attrs, RTA_MULTIPATH)
		     ? hops_multipath(ev, attr_of(attrs, RTA_MULTIPATH), 0)
		     : hops_inline(ev, attrs, 0, 0);
	if (rc < 0)
		return rc;
	if (ev->n_hops == 0)
		return hops_encapsulate(ev, HOP_POP);
	for (unsigned int i = 0; i < ev->n_hops; i++)
		if (ev->hops[i].encap == HOP_PLAIN)
			ev->hops[i].encap = HOP_POP;
	return TAKEN;
}

/* Decode a MAC address behind a VTEP (doc/fpm.md, 5.5). Returns as message_decode(). */
static int
decode_neighbor(const struct nlmsghdr *nlh, struct fpm_event *ev)
{
	const struct ndmsg *ndm = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *vtep;
	struct attrs attrs;
	uint8_t *key = ev->prefix.addr.octet;
	uint16_t vlan = 0;

	if (message_attrs(nlh, sizeof(*ndm), &attrs) < 0)
		return -EBADMSG;
	if (ndm->ndm_family != AF_BRIDGE)
		return SKIP_TYPE;
	if (attr_copy(attr_of(&attrs, NDA_LLADDR), key, 6) < 0 ||
	    attrs_copy(&attrs, NDA_VLAN, &vlan, sizeof(vlan)) < 0 ||
	    attrs_copy(&attrs, NDA_PROTOCOL, &ev->protocol, sizeof(ev->protocol)) < 0)
		return -EBADMSG;
	ev->kind = nlh->nlmsg_type == RTM_DELNEIGH ? FPM_ROUTE_DEL : FPM_ROUTE;
	ev->table = FPM_TABLE_NONE;
	ev->prefix.family = FAMILY_MAC;
	ev->prefix.len = 96;
	key_put_u32(key + 6, (uint32_t)ndm->ndm_ifindex);
	key[10] = (uint8_t)(vlan >> 8);
	key[11] = (uint8_t)vlan;
	if (ev->kind == FPM_ROUTE_DEL)
		return TAKEN;
	ev->rtm_type = RTN_UNICAST;
	if (hops_encapsulate(ev, HOP_OTHER_ENCAP) < 0)
		return -ENOMEM;
	ev->hops->ifindex = (uint32_t)ndm->ndm_ifindex;
	vtep = attr_of(&attrs, NDA_DST);
	if (vtep == NULL)
		return TAKEN;
	ev->hops->gw_family = mnl_attr_get_payload_len(vtep) == 16 ? 6 : 4;
	return attr_copy(vtep, ev->hops->gw.octet, family_octets(ev->hops->gw_family));
}

static int
decode_route(const struct nlmsghdr *nlh, struct fpm_event *ev)
{
	const struct rtmsg *rtm = mnl_nlmsg_get_payload(nlh);
	bool del = nlh->nlmsg_type == RTM_DELROUTE;
	struct attrs attrs;
	int rc;

	rc = message_attrs(nlh, sizeof(*rtm), &attrs);
	if (rc < 0)
		return rc;
	if (rtm->rtm_family == AF_MPLS)
		return message_label(rtm, &attrs, del, ev);
	if (family_of_af(rtm->rtm_family) == 0)
		return SKIP_ROUTE;
	rc = message_prefix(&ev->prefix, &attrs, family_of_af(rtm->rtm_family),
			    rtm->rtm_dst_len);
	if (rc < 0)
		return rc;
	if (rtm->rtm_src_len != 0 || attrs_have(&attrs, RTA_SRC))
		return SKIP_ROUTE; /* source-specific */
	if (!route_type_taken(rtm->rtm_type, del))
		return SKIP_ROUTE;
	/*
	 * zebra sends fe80::/64 for one interface only; the kernel has it for all
	 * interfaces. Without zebra's route nothing is missing, so it does not count as an
	 * unsupported route.
	 */
	if (ev->prefix.family == 6 && ev->prefix.len >= 10 &&
	    ipaddr_is_linklocal6(&ev->prefix.addr))
		return SKIP_TYPE;

	ev->kind = del ? FPM_ROUTE_DEL : FPM_ROUTE;
	ev->rtm_type = rtm->rtm_type;
	ev->protocol = rtm->rtm_protocol;
	ev->table = rtm->rtm_table;
	rc = attrs_copy(&attrs, RTA_TABLE, &ev->table, sizeof(ev->table));
	if (ev->table == RT_TABLE_UNSPEC)
		ev->table = RT_TABLE_MAIN;
	if (table_is_reserved(ev->table))
		return SKIP_ROUTE;
	if (rc < 0 || del)
		return rc;
	if (attrs_have(&attrs, RTA_METRICS))
		rc = message_mtu(ev, attr_of(&attrs, RTA_METRICS));
	if (rc == 0 && rtm->rtm_type == RTN_UNICAST)
		rc = message_hops(ev, &attrs, rtm->rtm_flags);
	return rc;
}

int
message_nexthop(const struct nlmsghdr *nlh, struct fpm_event *ev)
{
	const struct nhmsg *nhm = mnl_nlmsg_get_payload(nlh);
	struct attrs attrs;
	int rc;

	rc = message_attrs(nlh, sizeof(*nhm), &attrs);
	if (rc < 0)
		return rc;
	if (attrs_copy(&attrs, NHA_ID, &ev->nhid, sizeof(ev->nhid)) < 0 || ev->nhid == 0)
		return -EBADMSG;
	if (nlh->nlmsg_type == RTM_DELNEXTHOP) {
		ev->kind = FPM_NEXTHOP_DEL;
		return TAKEN;
	}
	ev->kind = FPM_NEXTHOP;
	ev->protocol = nhm->nh_protocol;
	ev->blackhole = attrs_have(&attrs, NHA_BLACKHOLE);
	ev->is_group = attrs_have(&attrs, NHA_GROUP);
	if (ev->blackhole)
		return ev->is_group ? -EBADMSG : TAKEN;
	if (ev->is_group)
		return hops_group(ev, attr_of(&attrs, NHA_GROUP));
	return hops_nexthop(ev, &attrs, family_of_af(nhm->nh_family), nhm->nh_flags);
}

int
message_decode(const struct nlmsghdr *nlh, struct fpm_event *ev)
{
	switch (nlh->nlmsg_type) {
	case RTM_NEWROUTE:
	case RTM_DELROUTE:
		return decode_route(nlh, ev);
	case RTM_NEWNEXTHOP:
	case RTM_DELNEXTHOP:
		return message_nexthop(nlh, ev);
	case RTM_NEWNEIGH:
	case RTM_DELNEIGH:
		return decode_neighbor(nlh, ev);
	default:
		return SKIP_TYPE;
	}
}
