/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Next hops of a message: attributes in, an array of struct fpm_hop out. Any thread, no
 * state. It checks only the form. rib checks that ids and interfaces exist, because zebra
 * refers to objects in any order.
 */
#include "netlink/hops.h"

#include <assert.h>
#include <linux/lwtunnel.h>
#include <linux/mpls_iptunnel.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "base/inet.h"
#include "base/mpls_entry.h"
#include "netlink/segments.h"

/*
 * struct nexthop_grp with the high weight octet (Linux 6.12, zebra
 * --nexthop-weight-16-bit).
 */
struct group_member {
	uint32_t id;
	uint8_t weight, weight_high;
	uint16_t reserved;
};
static_assert(sizeof(struct group_member) == sizeof(struct nexthop_grp), "same place");

/* The attributes of one hop, from RTA_* or from NHA_*. */
struct hop_attrs {
	const struct nlattr *gateway, *via, *encap_type, *encap;
	const struct nlattr *new_labels; /* RTA_NEWDST, in the route of a label */
};

uint8_t
family_of_af(unsigned int af)
{
	return af == AF_INET ? 4 : af == AF_INET6 ? 6 : 0;
}

/*
 * Return the enum hop_encap of a type of lightweight tunnel. The types ip, ip6 and xfrm are
 * data for a tunnel device in mode `external`, which is a device of the kernel. All other
 * devices ignore them (net/ipv4/ip_tunnel_core.c: ip_tun_lwt_ops has no output).
 */
static uint8_t
encap_kind(uint16_t type)
{
	switch (type) {
	case LWTUNNEL_ENCAP_NONE:
	case LWTUNNEL_ENCAP_IP:
	case LWTUNNEL_ENCAP_IP6:
	case LWTUNNEL_ENCAP_XFRM:
		return HOP_PLAIN;
	case LWTUNNEL_ENCAP_ILA:
	case LWTUNNEL_ENCAP_BPF:
	case LWTUNNEL_ENCAP_RPL:
	case LWTUNNEL_ENCAP_IOAM6:
		return HOP_LWTUNNEL;
	case LWTUNNEL_ENCAP_MPLS:
		return HOP_MPLS;
	case LWTUNNEL_ENCAP_SEG6:
	case LWTUNNEL_ENCAP_SEG6_LOCAL:
		return HOP_SEG6;
	default:
		return HOP_OTHER_ENCAP; /* FRR's private vxlan (100) */
	}
}

/*
 * Decode a stack of label entries (RFC 3032, 2.1), outermost first. Their TC, S and TTL are
 * not used. The implicit null label never appears in a packet (RFC 3032, 2.1), so it is
 * left out. A stack that is too long is not an error: the hop gets no label, and rib
 * refuses it.
 */
static int
hop_labels(struct fpm_hop *hop, const struct nlattr *stack)
{
	const uint8_t *p = mnl_attr_get_payload(stack);
	size_t n = mnl_attr_get_payload_len(stack) / 4;

	if (n == 0 || mnl_attr_get_payload_len(stack) % 4 != 0)
		return -EBADMSG;
	hop->encap = HOP_PLAIN;
	for (size_t i = 0; i < n; i++) {
		uint32_t label = get_be32(p + 4 * i) >> 12;

		if (label == LABEL_IMPLICIT_NULL)
			continue;
		hop->encap = HOP_MPLS;
		if (hop->n_labels == LABELS_MAX) {
			hop->n_labels = 0;
			return 0;
		}
		hop->label[hop->n_labels++] = label;
	}
	return 0;
}

/*
 * Decode the content of NHA_ENCAP or RTA_ENCAP of type MPLS. Linux may send a TTL in it;
 * zebra sends none.
 */
static int
hop_mpls_tunnel(struct fpm_hop *hop, const struct nlattr *encap)
{
	struct attrs nested;
	uint8_t ttl = 0;

	if (encap == NULL)
		return 0; /* a hop without labels, which rib refuses */
	if (attrs_index(&nested, mnl_attr_get_payload(encap),
			mnl_attr_get_payload_len(encap)) < 0 ||
	    !attrs_have(&nested, MPLS_IPTUNNEL_DST) ||
	    attrs_copy(&nested, MPLS_IPTUNNEL_TTL, &ttl, sizeof(ttl)) < 0)
		return -EBADMSG;
	if (attrs_have(&nested, MPLS_IPTUNNEL_TTL))
		hop->label_ttl = (uint16_t)(LABEL_TTL_OWN | ttl);
	return hop_labels(hop, attr_of(&nested, MPLS_IPTUNNEL_DST));
}

/*
 * Decode RTA_VIA: a gateway of a family other than the route's (RFC 8950). The route of a
 * label may have a MAC address instead, which is not supported: rib refuses the hop.
 */
static int
hop_via(struct fpm_hop *hop, const struct nlattr *via)
{
	const uint8_t *p = mnl_attr_get_payload(via);
	uint16_t af;

	if (mnl_attr_get_payload_len(via) < sizeof(af))
		return -EBADMSG;
	memcpy(&af, p, sizeof(af));
	if (af == AF_PACKET) {
		hop->encap = HOP_OTHER_ENCAP;
		return 0;
	}
	hop->gw_family = family_of_af(af);
	if (hop->gw_family == 0 ||
	    mnl_attr_get_payload_len(via) != sizeof(af) + family_octets(hop->gw_family))
		return -EBADMSG;
	memcpy(hop->gw.octet, p + sizeof(af), family_octets(hop->gw_family));
	return 0;
}

static int
hop_decode(struct fpm_hop *hop, const struct hop_attrs *a, uint8_t family)
{
	uint16_t type = UINT16_MAX;

	if (a->gateway != NULL) {
		/*
		 * zebra 8.4 sends a group with one remaining member as a single hop that
		 * still has the group's family, AF_UNSPEC. The length of the gateway gives
		 * the family.
		 */
		if (family == 0)
			family = mnl_attr_get_payload_len(a->gateway) == 16 ? 6 : 4;
		hop->gw_family = family;
		if (attr_copy(a->gateway, hop->gw.octet, family_octets(family)) < 0)
			return -EBADMSG;
	} else if (a->via != NULL && hop_via(hop, a->via) < 0) {
		return -EBADMSG;
	}
	if (a->encap_type != NULL && attr_copy(a->encap_type, &type, sizeof(type)) < 0)
		return -EBADMSG;
	if (a->encap_type != NULL || a->encap != NULL)
		hop->encap = encap_kind(type);
	if (hop->encap == HOP_MPLS)
		return hop_mpls_tunnel(hop, a->encap);
	if (hop->encap == HOP_SEG6)
		return hop_segments(hop, a->encap, type == LWTUNNEL_ENCAP_SEG6_LOCAL);
	if (hop->encap != HOP_PLAIN || a->new_labels == NULL)
		return 0;
	return hop_labels(hop, a->new_labels);
}

static int
hops_copy(struct fpm_event *ev, const struct fpm_hop *hops, unsigned int n)
{
	struct fpm_hop *copy = malloc(n * sizeof(*copy));

	if (copy == NULL)
		return -ENOMEM;
	memcpy(copy, hops, n * sizeof(*copy));
	ev->hops = copy;
	ev->n_hops = (uint16_t)n;
	return 0;
}

/* Collect the attributes of a route or of one RTA_MULTIPATH entry. */
static struct hop_attrs
rta_hop_attrs(const struct attrs *attrs)
{
	return (struct hop_attrs){
		.gateway = attr_of(attrs, RTA_GATEWAY),
		.via = attr_of(attrs, RTA_VIA),
		.encap_type = attr_of(attrs, RTA_ENCAP_TYPE),
		.encap = attr_of(attrs, RTA_ENCAP),
		.new_labels = attr_of(attrs, RTA_NEWDST),
	};
}

int
hops_inline(struct fpm_event *ev, const struct attrs *attrs, uint8_t family,
	    unsigned int flags)
{
	struct fpm_hop hop = {.weight = 1, .onlink = (flags & RTNH_F_ONLINK) != 0};
	struct hop_attrs a = rta_hop_attrs(attrs);

	if (hop_decode(&hop, &a, family) < 0 ||
	    attrs_copy(attrs, RTA_OIF, &hop.ifindex, sizeof(hop.ifindex)) < 0)
		return -EBADMSG;
	if (hop.gw_family == 0 && hop.ifindex == 0)
		return 0; /* no next hop: the route is kept as unreachable */
	return hops_copy(ev, &hop, 1);
}

int
hops_nexthop(struct fpm_event *ev, const struct attrs *attrs, uint8_t family,
	     unsigned int flags)
{
	struct fpm_hop hop = {.weight = 1, .onlink = (flags & RTNH_F_ONLINK) != 0};
	struct hop_attrs a = {
		.gateway = attr_of(attrs, NHA_GATEWAY),
		.encap_type = attr_of(attrs, NHA_ENCAP_TYPE),
		.encap = attr_of(attrs, NHA_ENCAP),
	};

	if (hop_decode(&hop, &a, family) < 0 ||
	    attrs_copy(attrs, NHA_OIF, &hop.ifindex, sizeof(hop.ifindex)) < 0)
		return -EBADMSG;
	if (hop.gw_family == 0 && hop.ifindex == 0)
		return -EBADMSG;
	return hops_copy(ev, &hop, 1);
}

/* Decode one RTA_MULTIPATH entry within `left` octets. Returns octets used or -EBADMSG. */
static int
multipath_entry(struct fpm_hop *hop, const uint8_t *p, size_t left, uint8_t family)
{
	struct hop_attrs a;
	struct attrs attrs;
	struct rtnexthop nh;

	if (left < sizeof(nh))
		return -EBADMSG;
	memcpy(&nh, p, sizeof(nh));
	if (nh.rtnh_len < sizeof(nh) || nh.rtnh_len > left)
		return -EBADMSG;
	if (attrs_index(&attrs, p + sizeof(nh), nh.rtnh_len - sizeof(nh)) < 0)
		return -EBADMSG;
	*hop = (struct fpm_hop){
		.ifindex = (uint32_t)nh.rtnh_ifindex,
		.weight = nh.rtnh_hops + 1u,
		.onlink = (nh.rtnh_flags & RTNH_F_ONLINK) != 0,
		.dead = (nh.rtnh_flags & RTNH_F_DEAD) != 0,
	};
	a = rta_hop_attrs(&attrs);
	if (hop_decode(hop, &a, family) < 0)
		return -EBADMSG;
	return nh.rtnh_len;
}

int
hops_multipath(struct fpm_event *ev, const struct nlattr *multipath, uint8_t family)
{
	const uint8_t *p = mnl_attr_get_payload(multipath);
	size_t left = mnl_attr_get_payload_len(multipath);
	unsigned int max = (unsigned int)(left / sizeof(struct rtnexthop)), n = 0;
	struct fpm_hop *hops;
	int used;

	if (max == 0)
		return -EBADMSG;
	hops = malloc(max * sizeof(*hops));
	if (hops == NULL)
		return -ENOMEM;
	for (; left > 0; n++) {
		used = multipath_entry(&hops[n], p, left, family);
		if (used < 0) {
			free(hops);
			return used;
		}
		used = (int)MNL_ALIGN((unsigned int)used);
		if ((size_t)used > left)
			used = (int)left;
		p += used;
		left -= (size_t)used;
	}
	/* Return unused memory: most entries are longer than their minimum. */
	ev->hops = n == max ? hops : realloc(hops, n * sizeof(*hops));
	if (ev->hops == NULL)
		ev->hops = hops;
	ev->n_hops = (uint16_t)n;
	return 0;
}

int
hops_group(struct fpm_event *ev, const struct nlattr *group)
{
	const uint8_t *p = mnl_attr_get_payload(group);
	size_t len = mnl_attr_get_payload_len(group);
	unsigned int n = (unsigned int)(len / sizeof(struct group_member));
	struct fpm_hop *hops;

	if (n == 0 || len % sizeof(struct group_member) != 0)
		return -EBADMSG;
	hops = calloc(n, sizeof(*hops));
	if (hops == NULL)
		return -ENOMEM;
	for (unsigned int i = 0; i < n; i++) {
		struct group_member m;

		memcpy(&m, p + i * sizeof(m), sizeof(m));
		if (m.id == 0) {
			free(hops);
			return -EBADMSG;
		}
		hops[i].id = m.id;
		hops[i].weight = m.weight + 256u * m.weight_high + 1u;
	}
	ev->hops = hops;
	ev->n_hops = (uint16_t)n;
	return 0;
}
