/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kmon_parse: turn one rtnetlink message into one change of the mirror.
 *
 * No state, any thread. It rejects messages of no interest before libnl parses them.
 * AF_BRIDGE messages come in the same groups, about ports and the forwarding database of a
 * bridge, so an RTM_DELLINK among them does not mean that the link is gone.
 */
#include <assert.h>
#include <arpa/inet.h>
#include <net/if.h> /* before linux/if.h, which defines only what net/if.h does not */
#include <linux/if.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/neighbour.h>
#include <linux/netconf.h>
#include <linux/rtnetlink.h>
#include <netlink/msg.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>
#include <netlink/route/link/inet.h>
#include <netlink/route/link/macvlan.h>
#include <netlink/route/link/vlan.h>
#include <netlink/route/link/vrf.h>
#include <netlink/route/neighbour.h>
#include <string.h>

#include "tap-bridge/kmon_impl.h"

#define FORCE_FORWARDING (DEVCONF_ACCEPT_RA_MIN_LFT + 1) /* Linux 6.17 */

/* IF_LINK_MODE_DORMANT of linux/if.h, which cannot be included together with net/if.h. */
#define LINK_MODE_DORMANT 1

#define MAC_BYTES 6

struct parse {
	struct kmon_change *change;
	bool ok;
};

/* Copy an IP address. Returns its family as 4 or 6, or 0 when it is neither. */
static uint8_t
ip_copy(uint8_t to[16], const struct nl_addr *from)
{
	unsigned int len = from == NULL ? 0 : nl_addr_get_len(from);

	if (len != 4 && len != 16)
		return 0;
	memcpy(to, nl_addr_get_binary_addr(from), len);
	return len == 4 ? 4 : 6;
}

static bool
mac_copy(uint8_t to[MAC_BYTES], const struct nl_addr *from)
{
	if (from == NULL || nl_addr_get_len(from) != MAC_BYTES)
		return false;
	memcpy(to, nl_addr_get_binary_addr(from), MAC_BYTES);
	return true;
}

/* Parse the fields of a VLAN or macvlan. */
static void
parse_upper(struct rtnl_link *from, struct kmon_link *link)
{
	bool macvlan = rtnl_link_is_macvlan(from);
	int32_t netns;

	/*
	 * If the link below is in another namespace, IFLA_LINK has no meaning in this one.
	 */
	if ((!macvlan && !rtnl_link_is_vlan(from)) ||
	    rtnl_link_get_link_netnsid(from, &netns) == 0)
		return;
	link->on = (unsigned int)rtnl_link_get_link(from);
	if (macvlan) {
		link->macvlan = rtnl_link_macvlan_get_mode(from) == MACVLAN_MODE_SOURCE
					? KMON_MACVLAN_BY_SOURCE
					: KMON_MACVLAN_BY_MAC;
		return;
	}
	link->vlan_type = ntohs((uint16_t)rtnl_link_vlan_get_protocol(from));
	link->vlan_id = (uint16_t)rtnl_link_vlan_get_id(from);
}

static bool
parse_link(struct rtnl_link *from, struct kmon_link *link)
{
	const char *name = rtnl_link_get_name(from);
	unsigned int flags = rtnl_link_get_flags(from);
	uint32_t table, notify;

	/* Wireless extensions send an RTM_NEWLINK with only an event and no name. */
	if (name == NULL)
		return false;
	link->ifindex = (unsigned int)rtnl_link_get_ifindex(from);
	strncpy(link->name, name, sizeof(link->name) - 1);
	mac_copy(link->mac, rtnl_link_get_addr(from));
	link->mtu_bytes = rtnl_link_get_mtu(from);
	link->admin_up = flags & IFF_UP;
	link->carrier = flags & IFF_LOWER_UP;
	link->dormant = rtnl_link_get_linkmode(from) == LINK_MODE_DORMANT;
	link->arp_off = flags & IFF_NOARP;
	link->arp_notify =
		rtnl_link_inet_get_conf(from, IPV4_DEVCONF_ARP_NOTIFY, &notify) == 0 &&
		notify != 0;
	parse_upper(from, link);
	link->master = (unsigned int)rtnl_link_get_master(from);
	link->group = rtnl_link_get_group(from);
	if (rtnl_link_is_vrf(from) && rtnl_link_vrf_get_tableid(from, &table) == 0)
		link->vrf_table = table;
	return true;
}

/*
 * Parse an address. IFA_LOCAL is the local address, IFA_ADDRESS the far end; IPv6 omits
 * IFA_LOCAL, and libnl allows for that.
 */
static bool
parse_addr(struct rtnl_addr *from, struct kmon_addr *addr)
{
	unsigned int flags = rtnl_addr_get_flags(from);

	addr->ifindex = (unsigned int)rtnl_addr_get_ifindex(from);
	addr->family = ip_copy(addr->addr, rtnl_addr_get_local(from));
	if (addr->family == 0)
		return false;
	if (ip_copy(addr->peer, rtnl_addr_get_peer(from)) != addr->family)
		memcpy(addr->peer, addr->addr, sizeof(addr->peer));
	addr->plen = (uint8_t)rtnl_addr_get_prefixlen(from);
	addr->tentative = flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED);
	addr->secondary = addr->family == 4 && (flags & IFA_F_SECONDARY);
	addr->deprecated = flags & IFA_F_DEPRECATED;
	if (addr->family == 4)
		addr->scope = (uint8_t)rtnl_addr_get_scope(from);
	return true;
}

static bool
neigh_is_group(const struct kmon_neigh *neigh)
{
	return neigh->family == 4 ? neigh->addr[0] >= 224 : neigh->addr[0] == 0xff;
}

/*
 * Return true if the entry is a neighbor. The kernel keeps NOARP entries for itself where
 * the link resolves no addresses (loopback), or the address is a group or a broadcast;
 * other NOARP entries are static neighbors. Some static neighbors have the MAC of a group
 * (clusters of servers).
 */
static bool
neigh_is_usable(const struct kmon_neigh *neigh)
{
	static const uint8_t zero[MAC_BYTES];
	static const uint8_t broadcast[MAC_BYTES] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

	if (neigh->nud == NUD_NONE)
		return false;
	if ((neigh->nud & NUD_NOARP) == 0)
		return true;
	return neigh->has_mac && !neigh_is_group(neigh) &&
	       memcmp(neigh->mac, broadcast, sizeof(broadcast)) != 0 &&
	       memcmp(neigh->mac, zero, sizeof(zero)) != 0;
}

static bool
parse_neigh(struct rtnl_neigh *from, struct kmon_change *change)
{
	struct kmon_neigh *neigh = &change->item.neigh;

	neigh->ifindex = (unsigned int)rtnl_neigh_get_ifindex(from);
	neigh->family = ip_copy(neigh->addr, rtnl_neigh_get_dst(from));
	if (neigh->family == 0)
		return false;
	neigh->nud = (uint16_t)rtnl_neigh_get_state(from);
	/* The kernel sends a MAC only while it is valid (NUD_VALID). */
	neigh->has_mac = mac_copy(neigh->mac, rtnl_neigh_get_lladdr(from));
	if (!neigh_is_usable(neigh))
		change->gone = true;
	return true;
}

/*
 * Return the mode of a value of rp_filter: the kernel takes each value above 1 for loose.
 */
static uint8_t
rp_filter_mode(int value)
{
	return value <= 0 ? 0 : value == 1 ? 1 : 2;
}

/*
 * Parse the numbers of a netconf message; libnl would need one more kind of object for it.
 * A message about one setting that has changed has this setting alone.
 */
static bool
parse_conf(struct nlmsghdr *hdr, uint8_t family, struct kmon_change *change)
{
	struct kmon_conf *conf = &change->item.conf;
	struct nlattr *attr[NETCONFA_MAX + 1];

	if (nlmsg_parse(hdr, sizeof(struct netconfmsg), attr, NETCONFA_MAX, NULL) < 0 ||
	    attr[NETCONFA_IFINDEX] == NULL)
		return false;
	conf->ifindex = (unsigned int)nla_get_s32(attr[NETCONFA_IFINDEX]);
	conf->family = family == AF_INET ? 4 : 6;
	if (change->gone)
		return true;
	/* The kernel applies the defaults to new links only. */
	if ((int)conf->ifindex == NETCONFA_IFINDEX_DEFAULT)
		return false;
	change->lacks_forwarding = attr[NETCONFA_FORWARDING] == NULL;
	change->lacks_linkdown = attr[NETCONFA_IGNORE_ROUTES_WITH_LINKDOWN] == NULL;
	/* IPv6 has no rp_filter. */
	change->lacks_rp_filter = attr[NETCONFA_RP_FILTER] == NULL;
	if (!change->lacks_forwarding)
		conf->forwarding = nla_get_s32(attr[NETCONFA_FORWARDING]) != 0;
	if (!change->lacks_linkdown)
		conf->ignore_linkdown =
			nla_get_s32(attr[NETCONFA_IGNORE_ROUTES_WITH_LINKDOWN]) != 0;
	if (!change->lacks_rp_filter)
		conf->rp_filter = rp_filter_mode(nla_get_s32(attr[NETCONFA_RP_FILTER]));
	return !change->lacks_forwarding || !change->lacks_linkdown ||
	       !change->lacks_rp_filter;
}

/*
 * Parse a netconf message of MPLS. The kernel sends one for each link, none for `all` or
 * the defaults.
 */
static bool
parse_mpls(struct nlmsghdr *hdr, struct kmon_change *change)
{
	struct kmon_mpls *mpls = &change->item.mpls;
	struct nlattr *attr[NETCONFA_MAX + 1];

	if (nlmsg_parse(hdr, sizeof(struct netconfmsg), attr, NETCONFA_MAX, NULL) < 0 ||
	    attr[NETCONFA_IFINDEX] == NULL || nla_get_s32(attr[NETCONFA_IFINDEX]) <= 0)
		return false;
	mpls->ifindex = (unsigned int)nla_get_s32(attr[NETCONFA_IFINDEX]);
	if (change->gone)
		return true;
	if (attr[NETCONFA_INPUT] == NULL)
		return false;
	mpls->input = nla_get_s32(attr[NETCONFA_INPUT]) != 0;
	return true;
}

/* Parse IFLA_INET6_CONF, which is an array. An older kernel has fewer values. */
static bool
parse_inet6_conf(struct nlattr *attr, struct kmon_inet6 *inet6)
{
	int32_t conf[FORCE_FORWARDING + 1] = {0};
	size_t bytes = (size_t)nla_len(attr);

	static_assert(DEVCONF_MTU6 < DEVCONF_DISABLE_IPV6 &&
			      DEVCONF_DISABLE_IPV6 < FORCE_FORWARDING,
		      "all are in conf[]");
	if (bytes < (DEVCONF_DISABLE_IPV6 + 1) * sizeof(conf[0]))
		return false;
	memcpy(conf, nla_data(attr), bytes < sizeof(conf) ? bytes : sizeof(conf));
	inet6->off = conf[DEVCONF_DISABLE_IPV6] != 0;
	inet6->mtu_bytes = (unsigned int)conf[DEVCONF_MTU6];
	inet6->ndisc_notify = conf[DEVCONF_NDISC_NOTIFY] != 0;
	inet6->force_forwarding = conf[FORCE_FORWARDING] != 0;
	return true;
}

/*
 * Parse the settings of IPv6 in an RTM_NEWLINK of AF_INET6. A message without them comes
 * from a kernel without IPv6.
 */
static bool
parse_inet6(struct nlmsghdr *hdr, struct kmon_change *change)
{
	struct kmon_inet6 *inet6 = &change->item.inet6;
	struct nlattr *attr[IFLA_MAX + 1], *of[IFLA_INET6_MAX + 1];
	const struct ifinfomsg *link = nlmsg_data(hdr);

	if (nlmsg_parse(hdr, sizeof(*link), attr, IFLA_MAX, NULL) < 0)
		return false;
	inet6->ifindex = (unsigned int)link->ifi_index;
	if (change->gone)
		return true;
	return attr[IFLA_PROTINFO] != NULL &&
	       nla_parse_nested(of, IFLA_INET6_MAX, attr[IFLA_PROTINFO], NULL) >= 0 &&
	       of[IFLA_INET6_CONF] != NULL && parse_inet6_conf(of[IFLA_INET6_CONF], inet6);
}

bool
kmon_parse_inet6_of_link(struct nlmsghdr *hdr, struct kmon_inet6 *inet6)
{
	const struct ifinfomsg *link = nlmsg_data(hdr);
	struct nlattr *spec = nlmsg_find_attr(hdr, sizeof(*link), IFLA_AF_SPEC), *at;
	struct nlattr *of[IFLA_INET6_MAX + 1];

	at = spec == NULL ? NULL : nla_find(nla_data(spec), nla_len(spec), AF_INET6);
	inet6->ifindex = (unsigned int)link->ifi_index;
	return at != NULL && nla_parse_nested(of, IFLA_INET6_MAX, at, NULL) >= 0 &&
	       of[IFLA_INET6_CONF] != NULL && parse_inet6_conf(of[IFLA_INET6_CONF], inet6);
}

static void
parse_object(struct nl_object *obj, void *arg)
{
	struct parse *p = arg;

	switch (p->change->kind) {
	case KMON_LINK:
		p->ok = parse_link((struct rtnl_link *)obj, &p->change->item.link);
		break;
	case KMON_ADDR:
		p->ok = parse_addr((struct rtnl_addr *)obj, &p->change->item.addr);
		break;
	default:
		p->ok = parse_neigh((struct rtnl_neigh *)obj, p->change);
		break;
	}
}

static bool
family_is_ip(uint8_t family)
{
	return family == AF_INET || family == AF_INET6;
}

bool
kmon_parse(struct nl_msg *msg, struct kmon_change *change)
{
	struct nlmsghdr *hdr = nlmsg_hdr(msg);
	struct parse p = {.change = change};
	const struct ndmsg *ndm;
	uint8_t family;

	/* The family is the first octet of every rtnetlink body. */
	if (!nlmsg_valid_hdr(hdr, sizeof(struct rtgenmsg)))
		return false;
	family = ((struct rtgenmsg *)nlmsg_data(hdr))->rtgen_family;

	memset(change, 0, sizeof(*change));
	switch (hdr->nlmsg_type) {
	case RTM_DELLINK:
		change->gone = true;
		/* fall through */
	case RTM_NEWLINK:
		if (family == AF_INET6) {
			change->kind = KMON_INET6;
			return parse_inet6(hdr, change);
		}
		if (family != AF_UNSPEC)
			return false;
		change->kind = KMON_LINK;
		break;
	case RTM_DELNETCONF:
		change->gone = true;
		/* fall through */
	case RTM_NEWNETCONF:
		if (family == AF_MPLS) {
			change->kind = KMON_MPLS;
			return parse_mpls(hdr, change);
		}
		change->kind = KMON_CONF;
		return family_is_ip(family) && parse_conf(hdr, family, change);
	case RTM_DELADDR:
		change->gone = true;
		/* fall through */
	case RTM_NEWADDR:
		if (!family_is_ip(family))
			return false;
		change->kind = KMON_ADDR;
		break;
	case RTM_DELNEIGH:
		change->gone = true;
		/* fall through */
	case RTM_NEWNEIGH:
		if (family == AF_BRIDGE) {
			change->kind = KMON_FDB;
			return kmon_parse_fdb(hdr, &change->item.fdb);
		}
		ndm = nlmsg_data(hdr);
		if (!family_is_ip(family) || !nlmsg_valid_hdr(hdr, sizeof(*ndm)) ||
		    (ndm->ndm_flags & NTF_PROXY))
			return false;
		change->kind = KMON_NEIGH;
		break;
	default:
		return false;
	}
	if (nl_msg_parse(msg, parse_object, &p) < 0 || !p.ok)
		return false;
	if (change->kind == KMON_LINK && !change->gone) {
		struct nlattr *down =
			nlmsg_find_attr(hdr, sizeof(struct ifinfomsg), IFLA_PROTO_DOWN);

		change->item.link.protodown = down != NULL && nla_get_u8(down) != 0;
		kmon_parse_tunnel(hdr, &change->item.link.tunnel);
		kmon_parse_vxlan(hdr, &change->item.link);
	}
	return true;
}
