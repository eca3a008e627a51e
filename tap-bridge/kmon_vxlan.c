/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kmon_vxlan: parse the messages of rtnetlink about VXLAN: the settings of a vxlan device
 * and of the bridge above it (IFLA_INFO_DATA), the VTEP of a MAC (AF_BRIDGE neighbors), and
 * the VNI of a VLAN (AF_BRIDGE links).
 *
 * Runs in the monitor's thread.
 */
#include <arpa/inet.h>
#include <net/if.h> /* before linux/if.h, which defines only what net/if.h does not */
#include <linux/if_bridge.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <string.h>

#include "tap-bridge/kmon_impl.h"

#define ECN_MASK        3u
#define TOS_INHERIT     1u
#define FLOW_LABEL_MASK 0xfffffu
#define MAC_BYTES       6
#define GEN_MARK        UINT64_MAX /* no dump has this generation */

static uint8_t
attr_u8(const struct nlattr *a)
{
	return a == NULL || nla_len(a) < 1 ? 0 : nla_get_u8(a);
}

static uint16_t
attr_be16(const struct nlattr *a)
{
	return a == NULL || nla_len(a) < 2 ? 0 : ntohs(nla_get_u16(a));
}

static uint32_t
attr_u32(const struct nlattr *a)
{
	return a == NULL || nla_len(a) < 4 ? 0 : nla_get_u32(a);
}

/* Copy an IP address. Returns its family as 4 or 6, or 0 when it is neither. */
static uint8_t
address_copy(uint8_t to[16], const struct nlattr *a)
{
	int len = a == NULL ? 0 : nla_len(a);

	if (len != 4 && len != 16)
		return 0;
	memcpy(to, nla_data(a), (size_t)len);
	return len == 4 ? 4 : 6;
}

/* --- links ---------------------------------------------------------------------------- */

/* Return true if the link has a kind. The kernel sends the name with a final null octet. */
static bool
kind_is(const struct nlattr *name, const char *kind)
{
	size_t len = strlen(kind);

	return name != NULL && (size_t)nla_len(name) >= len &&
	       strnlen(nla_data(name), (size_t)nla_len(name)) == len &&
	       memcmp(nla_data(name), kind, len) == 0;
}

static enum kmon_tunnel_cannot
vxlan_cannot(struct nlattr **attr)
{
	if (attr_u8(attr[IFLA_VXLAN_LEARNING]) != 0)
		return KMON_TUNNEL_LEARNING;
	if (attr[IFLA_VXLAN_GBP] != NULL)
		return KMON_TUNNEL_GBP;
	if (attr[IFLA_VXLAN_GPE] != NULL)
		return KMON_TUNNEL_GPE;
	return attr_u8(attr[IFLA_VXLAN_REMCSUM_TX]) != 0 ||
			       attr_u8(attr[IFLA_VXLAN_REMCSUM_RX]) != 0
		       ? KMON_TUNNEL_REMCSUM
		       : KMON_TUNNEL_CAN;
}

static void
vxlan_read(struct nlattr **attr, struct kmon_tunnel *t)
{
	const struct nlattr *from = attr[IFLA_VXLAN_PORT_RANGE];
	uint8_t tos = attr_u8(attr[IFLA_VXLAN_TOS]), df = attr_u8(attr[IFLA_VXLAN_DF]);
	struct ifla_vxlan_port_range range;

	t->cannot = vxlan_cannot(attr);
	t->external = attr_u8(attr[IFLA_VXLAN_COLLECT_METADATA]) != 0;
	t->vnifilter = attr_u8(attr[IFLA_VXLAN_VNIFILTER]) != 0;
	t->vni = t->external ? 0 : attr_u32(attr[IFLA_VXLAN_ID]);
	t->port = attr_be16(attr[IFLA_VXLAN_PORT]);
	t->link = attr_u32(attr[IFLA_VXLAN_LINK]);
	t->family = address_copy(t->local, attr[IFLA_VXLAN_LOCAL]);
	if (t->family == 0)
		t->family = address_copy(t->local, attr[IFLA_VXLAN_LOCAL6]);
	if (address_copy(t->remote, attr[IFLA_VXLAN_GROUP]) == 0)
		address_copy(t->remote, attr[IFLA_VXLAN_GROUP6]);
	if (t->family == 0) /* no local address; `show interfaces` prints the remote */
		t->family = attr[IFLA_VXLAN_GROUP6] != NULL ? 6 : 4;
	t->ttl = attr_u8(attr[IFLA_VXLAN_TTL]);
	t->ttl_inherit = attr_u8(attr[IFLA_VXLAN_TTL_INHERIT]) != 0;
	t->tos_inherit = tos == TOS_INHERIT;
	t->tos = t->tos_inherit ? 0 : (uint8_t)(tos & ~ECN_MASK);
	t->flow_label = ntohl(attr_u32(attr[IFLA_VXLAN_LABEL])) & FLOW_LABEL_MASK;
	t->df = df == VXLAN_DF_SET;
	t->ignore_df = df != VXLAN_DF_INHERIT;
	t->csum = t->family == 4 ? attr_u8(attr[IFLA_VXLAN_UDP_CSUM]) != 0
				 : attr_u8(attr[IFLA_VXLAN_UDP_ZERO_CSUM6_TX]) == 0;
	t->zero_csum6 = attr_u8(attr[IFLA_VXLAN_UDP_ZERO_CSUM6_RX]) != 0;
	if (from == NULL || nla_len(from) < (int)sizeof(range))
		return;
	memcpy(&range, nla_data(from), sizeof(range));
	t->from_low = ntohs(range.low);
	t->from_high = ntohs(range.high);
}

static void
vxlan_parse(struct nlattr *data, struct kmon_tunnel *t)
{
	struct nlattr *attr[IFLA_VXLAN_MAX + 1];

	t->kind = KMON_VXLAN;
	if (data == NULL || nla_parse_nested(attr, IFLA_VXLAN_MAX, data, NULL) < 0)
		t->cannot = KMON_TUNNEL_EXTERNAL; /* the tunnel has no addresses */
	else
		vxlan_read(attr, t);
}

void
kmon_parse_vxlan(struct nlmsghdr *hdr, struct kmon_link *link)
{
	struct nlattr *attr[IFLA_MAX + 1], *info[IFLA_INFO_MAX + 1], *of[IFLA_BR_MAX + 1];

	if (nlmsg_parse(hdr, sizeof(struct ifinfomsg), attr, IFLA_MAX, NULL) < 0 ||
	    attr[IFLA_LINKINFO] == NULL ||
	    nla_parse_nested(info, IFLA_INFO_MAX, attr[IFLA_LINKINFO], NULL) < 0)
		return;
	if (kind_is(info[IFLA_INFO_KIND], "vxlan")) {
		vxlan_parse(info[IFLA_INFO_DATA], &link->tunnel);
		if (attr[IFLA_LINK_NETNSID] != NULL)
			link->tunnel.cannot = KMON_TUNNEL_NAMESPACE;
		return;
	}
	link->bridge = kind_is(info[IFLA_INFO_KIND], "bridge");
	if (link->bridge && info[IFLA_INFO_DATA] != NULL &&
	    nla_parse_nested(of, IFLA_BR_MAX, info[IFLA_INFO_DATA], NULL) >= 0)
		link->vlan_filtering = attr_u8(of[IFLA_BR_VLAN_FILTERING]) != 0;
}

/* --- forwarding databases ------------------------------------------------------------- */

/*
 * Entries of the bridge itself name no VTEP. The MAC zero is the list of VTEPs that get
 * frames to groups; only the kernel sends such frames.
 */
bool
kmon_parse_fdb(struct nlmsghdr *hdr, struct kmon_fdb *fdb)
{
	static const uint8_t zero[MAC_BYTES];
	struct nlattr *attr[NDA_MAX + 1];
	const struct ndmsg *ndm = nlmsg_data(hdr);

	if (nlmsg_parse(hdr, sizeof(*ndm), attr, NDA_MAX, NULL) < 0 ||
	    attr[NDA_LLADDR] == NULL || nla_len(attr[NDA_LLADDR]) != MAC_BYTES)
		return false;
	memcpy(fdb->mac, nla_data(attr[NDA_LLADDR]), MAC_BYTES);
	fdb->family = address_copy(fdb->remote, attr[NDA_DST]);
	if (fdb->family == 0 || (fdb->mac[0] & 1) != 0 ||
	    memcmp(fdb->mac, zero, sizeof(zero)) == 0)
		return false;
	fdb->ifindex = (unsigned int)ndm->ndm_ifindex;
	fdb->from_vni = attr_u32(attr[NDA_SRC_VNI]);
	fdb->vni = attr_u32(attr[NDA_VNI]);
	fdb->port = attr_be16(attr[NDA_PORT]);
	fdb->link = attr_u32(attr[NDA_IFINDEX]);
	return true;
}

/* --- VNIs of VLANs -------------------------------------------------------------------- */

int
kmon_ask_vnis(struct nl_sock *sk)
{
	struct ifinfomsg body = {.ifi_family = AF_BRIDGE};
	struct nl_msg *msg = nlmsg_alloc_simple(RTM_GETLINK, NLM_F_DUMP);
	int rc;

	if (msg == NULL)
		return -NLE_NOMEM;
	rc = nlmsg_append(msg, &body, sizeof(body), NLMSG_ALIGNTO);
	if (rc >= 0)
		rc = nla_put_u32(msg, IFLA_EXT_MASK, RTEXT_FILTER_BRVLAN_COMPRESSED);
	if (rc >= 0)
		rc = nl_send_auto(sk, msg);
	nlmsg_free(msg);
	return rc;
}

struct vlan_tunnel {
	uint32_t vni;
	uint16_t vlan, flags;
};

static bool
vlan_tunnel_parse(struct nlattr *a, struct vlan_tunnel *v)
{
	struct nlattr *of[IFLA_BRIDGE_VLAN_TUNNEL_MAX + 1];

	if (nla_type(a) != IFLA_BRIDGE_VLAN_TUNNEL_INFO ||
	    nla_parse_nested(of, IFLA_BRIDGE_VLAN_TUNNEL_MAX, a, NULL) < 0 ||
	    of[IFLA_BRIDGE_VLAN_TUNNEL_VID] == NULL ||
	    nla_len(of[IFLA_BRIDGE_VLAN_TUNNEL_VID]) < 2)
		return false;
	v->vni = attr_u32(of[IFLA_BRIDGE_VLAN_TUNNEL_ID]);
	v->vlan = nla_get_u16(of[IFLA_BRIDGE_VLAN_TUNNEL_VID]);
	v->flags = of[IFLA_BRIDGE_VLAN_TUNNEL_FLAGS] == NULL ||
				   nla_len(of[IFLA_BRIDGE_VLAN_TUNNEL_FLAGS]) < 2
			   ? 0
			   : nla_get_u16(of[IFLA_BRIDGE_VLAN_TUNNEL_FLAGS]);
	return v->vlan < 4096;
}

/* Apply the VNIs of VLANs `from` to `to`; `vni` is the VNI of VLAN `from`. */
static void
vnis_apply(struct kmon *km, unsigned int ifindex, unsigned int from, unsigned int to,
	   uint32_t vni)
{
	for (unsigned int vlan = from; vlan <= to; vlan++) {
		struct kmon_change change = {.kind = KMON_VNI};
		int rc;

		change.item.vni.ifindex = ifindex;
		change.item.vni.vlan = (uint16_t)vlan;
		change.item.vni.vni = vni + vlan - from;
		rc = kmon_apply(km, &change);
		if (rc < 0)
			km->apply_rc = rc;
	}
}

/*
 * Return the number of octets in IFLA_AF_SPEC, the last attribute of the message. The
 * length of an attribute has 16 bits. If the attribute is longer (more than 1820 VLANs,
 * each with a VNI), Linux sends the low 16 bits of the length.
 */
static int
spec_bytes(const struct nlmsghdr *hdr, const struct nlattr *spec)
{
	size_t rest = hdr->nlmsg_len - (size_t)((const char *)spec - (const char *)hdr);

	return rest > UINT16_MAX && (uint16_t)rest == spec->nla_len ? (int)rest - NLA_HDRLEN
								    : nla_len(spec);
}

static void
spec_apply(struct kmon *km, const struct nlmsghdr *hdr, unsigned int ifindex,
	   struct nlattr *spec)
{
	struct vlan_tunnel first = {0}, v;
	struct nlattr *a;
	int left;

	nla_for_each_attr(a, nla_data(spec), spec_bytes(hdr, spec), left)
	{
		if (!vlan_tunnel_parse(a, &v))
			continue;
		if ((v.flags & BRIDGE_VLAN_INFO_RANGE_BEGIN) != 0)
			first = v;
		else if ((v.flags & BRIDGE_VLAN_INFO_RANGE_END) != 0)
			vnis_apply(km, ifindex, first.vlan, v.vlan, first.vni);
		else
			vnis_apply(km, ifindex, v.vlan, v.vlan, v.vni);
	}
}

/* Before a message about a port is applied: mark the VNIs that the port had. */
static void
vnis_mark(struct kmon *km, uint32_t ifindex)
{
	struct mirror *m = &km->mirror[KMON_VNI];

	for (struct mirror_entry *e = mirror_first_on(m, ifindex); e != NULL;
	     e = mirror_next_on(m, e))
		e->gen = GEN_MARK;
}

/* Report as gone the marked VNIs, which the message did not have. */
static void
vnis_sweep(struct kmon *km, uint32_t ifindex)
{
	struct mirror *m = &km->mirror[KMON_VNI];
	struct mirror_entry *lost = NULL, *next;

	for (struct mirror_entry *e = mirror_first_on(m, ifindex); e != NULL; e = next) {
		next = mirror_next_on(m, e);
		if (e->gen != GEN_MARK)
			continue;
		mirror_remove(m, e);
		e->next = lost;
		lost = e;
	}
	kmon_report_gone(km, KMON_VNI, lost);
}

bool
kmon_apply_vnis(struct kmon *km, struct nlmsghdr *hdr)
{
	const struct ifinfomsg *link = nlmsg_data(hdr);
	struct nlattr *spec;

	if ((hdr->nlmsg_type != RTM_NEWLINK && hdr->nlmsg_type != RTM_DELLINK) ||
	    !nlmsg_valid_hdr(hdr, sizeof(*link)) || link->ifi_family != AF_BRIDGE)
		return false;
	/*
	 * The sweep after a dump handles the VNIs that its messages do not have. An event
	 * must not change km->gen, because a dump of forwarding databases may be under way.
	 */
	if ((hdr->nlmsg_flags & NLM_F_MULTI) == 0)
		vnis_mark(km, (uint32_t)link->ifi_index);
	spec = nlmsg_find_attr(hdr, sizeof(*link), IFLA_AF_SPEC);
	if (spec != NULL && hdr->nlmsg_type == RTM_NEWLINK)
		spec_apply(km, hdr, (unsigned int)link->ifi_index, spec);
	if ((hdr->nlmsg_flags & NLM_F_MULTI) == 0)
		vnis_sweep(km, (uint32_t)link->ifi_index);
	return true;
}
