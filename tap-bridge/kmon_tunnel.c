/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kmon_tunnel: parse the settings of a tunnel (IFLA_INFO_KIND, IFLA_INFO_DATA) in a message
 * about a link. libnl's objects lack some of them.
 *
 * No state, any thread.
 */
#include <arpa/inet.h>
#include <net/if.h> /* before linux/if.h, which defines only what net/if.h does not */
#include <netinet/in.h>
#include <linux/if_link.h>
#include <linux/if_tunnel.h>
#include <linux/ip6_tunnel.h>
#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <string.h>

#include "tap-bridge/kmon_impl.h"

#define ECN_MASK        3u
#define TOS_INHERIT     1u
#define FLOW_LABEL_MASK 0xfffffu
#define PROTO_IP4       4u
#define PROTO_IP6       41u

/* Numbers of the attributes that GRE tunnels and other IP tunnels both have. */
struct numbers {
	int link, local, remote, ttl, tos, encap_limit, flowinfo, flags, df, encap_type,
		external, fwmark;
};

static const struct numbers of_gre = {.link = IFLA_GRE_LINK,
				      .local = IFLA_GRE_LOCAL,
				      .remote = IFLA_GRE_REMOTE,
				      .ttl = IFLA_GRE_TTL,
				      .tos = IFLA_GRE_TOS,
				      .encap_limit = IFLA_GRE_ENCAP_LIMIT,
				      .flowinfo = IFLA_GRE_FLOWINFO,
				      .flags = IFLA_GRE_FLAGS,
				      .df = IFLA_GRE_PMTUDISC,
				      .encap_type = IFLA_GRE_ENCAP_TYPE,
				      .external = IFLA_GRE_COLLECT_METADATA,
				      .fwmark = IFLA_GRE_FWMARK};
static const struct numbers of_iptun = {.link = IFLA_IPTUN_LINK,
					.local = IFLA_IPTUN_LOCAL,
					.remote = IFLA_IPTUN_REMOTE,
					.ttl = IFLA_IPTUN_TTL,
					.tos = IFLA_IPTUN_TOS,
					.encap_limit = IFLA_IPTUN_ENCAP_LIMIT,
					.flowinfo = IFLA_IPTUN_FLOWINFO,
					.flags = IFLA_IPTUN_FLAGS,
					.df = IFLA_IPTUN_PMTUDISC,
					.encap_type = IFLA_IPTUN_ENCAP_TYPE,
					.external = IFLA_IPTUN_COLLECT_METADATA,
					.fwmark = IFLA_IPTUN_FWMARK};

#define ATTR_MAX (IFLA_GRE_MAX > IFLA_IPTUN_MAX ? IFLA_GRE_MAX : IFLA_IPTUN_MAX)

/*
 * Return the number in an attribute of at most 4 octets in host order; 0: it is not there.
 */
static uint32_t
attr_number(const struct nlattr *a)
{
	switch (a == NULL ? 0 : nla_len(a)) {
	case 1:
		return nla_get_u8(a);
	case 2:
		return nla_get_u16(a);
	case 4:
		return nla_get_u32(a);
	default:
		return 0;
	}
}

/*
 * Return the number in an attribute of 2 or 4 octets in network order; 0: it is not there.
 */
static uint32_t
attr_number_be(const struct nlattr *a)
{
	uint32_t n = attr_number(a);

	return a != NULL && nla_len(a) == 2 ? ntohs((uint16_t)n) : ntohl(n);
}

static void
address_copy(uint8_t to[16], const struct nlattr *a, uint8_t family)
{
	int octets = family == 4 ? 4 : 16;

	if (a != NULL && nla_len(a) == octets)
		memcpy(to, nla_data(a), (size_t)octets);
}

static void
gre_parse(struct nlattr **attr, struct kmon_tunnel *t)
{
	uint32_t in = attr_number_be(attr[IFLA_GRE_IFLAGS]),
		 out = attr_number_be(attr[IFLA_GRE_OFLAGS]), both = in | out;

	t->has_in_key = (in & ntohs(GRE_KEY)) != 0;
	t->has_out_key = (out & ntohs(GRE_KEY)) != 0;
	if (t->has_in_key)
		t->in_key = attr_number_be(attr[IFLA_GRE_IKEY]);
	if (t->has_out_key)
		t->out_key = attr_number_be(attr[IFLA_GRE_OKEY]);
	if ((both & ntohs(GRE_CSUM)) != 0)
		t->cannot = KMON_TUNNEL_CHECKSUM;
	else if ((both & ntohs(GRE_SEQ)) != 0)
		t->cannot = KMON_TUNNEL_SEQUENCE;
}

/* Read the settings of ipip, sit and ip6tnl. */
static void
iptun_parse(struct nlattr **attr, struct kmon_tunnel *t)
{
	const struct nlattr *proto = attr[IFLA_IPTUN_PROTO];

	/* A kernel that does not report the protocol has tunnels of one protocol only. */
	t->proto = proto != NULL         ? (uint8_t)attr_number(proto)
		   : t->kind == KMON_SIT ? PROTO_IP6
					 : PROTO_IP4;
	if (t->proto != 0 && t->proto != PROTO_IP4 && t->proto != PROTO_IP6)
		t->cannot = KMON_TUNNEL_MPLS;
	if (t->kind == KMON_SIT && (attr_number(attr[IFLA_IPTUN_FLAGS]) & SIT_ISATAP) != 0)
		t->cannot = KMON_TUNNEL_ISATAP;
}

/* Read the settings of tunnels over IPv4. */
static void
outer4_parse(struct nlattr **attr, const struct numbers *no, struct kmon_tunnel *t)
{
	uint8_t tos = (uint8_t)attr_number(attr[no->tos]);

	t->tos_inherit = (tos & TOS_INHERIT) != 0;
	t->tos = t->tos_inherit ? 0 : (uint8_t)(tos & ~ECN_MASK);
	t->df = attr_number(attr[no->df]) != 0;
	if (no == &of_gre)
		t->ignore_df = attr_number(attr[IFLA_GRE_IGNORE_DF]) != 0;
}

/* Read the settings of tunnels over IPv6. */
static void
outer6_parse(struct nlattr **attr, const struct numbers *no, struct kmon_tunnel *t)
{
	uint32_t info = attr_number_be(attr[no->flowinfo]),
		 flags = attr_number(attr[no->flags]);

	t->tos_inherit = (flags & IP6_TNL_F_USE_ORIG_TCLASS) != 0;
	t->tos = t->tos_inherit ? 0 : (uint8_t)(info >> 20 & 0xff & ~ECN_MASK);
	t->flow_inherit = (flags & IP6_TNL_F_USE_ORIG_FLOWLABEL) != 0;
	t->flow_label = t->flow_inherit ? 0 : info & FLOW_LABEL_MASK;
	t->has_encap_limit = (flags & IP6_TNL_F_IGN_ENCAP_LIMIT) == 0;
	if (t->has_encap_limit)
		t->encap_limit = (uint8_t)attr_number(attr[no->encap_limit]);
	if ((flags & IP6_TNL_F_USE_ORIG_FWMARK) != 0)
		t->cannot = KMON_TUNNEL_FWMARK;
	if ((flags & IP6_TNL_F_RCV_DSCP_COPY) != 0)
		t->cannot = KMON_TUNNEL_DSCP_COPY;
	if ((flags & IP6_TNL_F_MIP6_DEV) != 0)
		t->cannot = KMON_TUNNEL_MIP6;
}

static enum kmon_tunnel_kind
kind_of(const struct nlattr *name)
{
	static const struct {
		const char *name;
		enum kmon_tunnel_kind kind;
	} kind[] = {{"gre", KMON_GRE},
		    {"ipip", KMON_IPIP},
		    {"sit", KMON_SIT},
		    {"ip6gre", KMON_IP6GRE},
		    {"ip6tnl", KMON_IP6TNL}};

	for (size_t i = 0; name != NULL && i < sizeof(kind) / sizeof(kind[0]); i++) {
		size_t len = strlen(kind[i].name);

		/* The kernel sends the name with its final null octet. */
		if ((size_t)nla_len(name) >= len &&
		    strnlen(nla_data(name), (size_t)nla_len(name)) == len &&
		    memcmp(nla_data(name), kind[i].name, len) == 0)
			return kind[i].kind;
	}
	return KMON_NO_TUNNEL;
}

static void
tunnel_parse(struct nlattr *data, struct kmon_tunnel *t)
{
	bool gre = t->kind == KMON_GRE || t->kind == KMON_IP6GRE;
	const struct numbers *no = gre ? &of_gre : &of_iptun;
	struct nlattr *attr[ATTR_MAX + 1];

	t->family = t->kind == KMON_IP6GRE || t->kind == KMON_IP6TNL ? 6 : 4;
	if (data == NULL || nla_parse_nested(attr, ATTR_MAX, data, NULL) < 0) {
		t->cannot = KMON_TUNNEL_EXTERNAL; /* the tunnel has no addresses */
		return;
	}
	address_copy(t->local, attr[no->local], t->family);
	address_copy(t->remote, attr[no->remote], t->family);
	t->link = attr_number(attr[no->link]);
	t->ttl = (uint8_t)attr_number(attr[no->ttl]);
	if (gre)
		gre_parse(attr, t);
	else
		iptun_parse(attr, t);
	if (t->family == 4)
		outer4_parse(attr, no, t);
	else
		outer6_parse(attr, no, t);
	if (attr_number(attr[no->fwmark]) != 0)
		t->cannot = KMON_TUNNEL_FWMARK;
	if (attr_number(attr[no->encap_type]) != TUNNEL_ENCAP_NONE)
		t->cannot = KMON_TUNNEL_ENCAP;
	if (attr[no->external] != NULL)
		t->cannot = KMON_TUNNEL_EXTERNAL;
}

void
kmon_parse_tunnel(struct nlmsghdr *hdr, struct kmon_tunnel *t)
{
	struct nlattr *attr[IFLA_MAX + 1], *info[IFLA_INFO_MAX + 1];

	memset(t, 0, sizeof(*t)); /* padding included */
	if (nlmsg_parse(hdr, sizeof(struct ifinfomsg), attr, IFLA_MAX, NULL) < 0 ||
	    attr[IFLA_LINKINFO] == NULL ||
	    nla_parse_nested(info, IFLA_INFO_MAX, attr[IFLA_LINKINFO], NULL) < 0)
		return;
	t->kind = kind_of(info[IFLA_INFO_KIND]);
	if (t->kind == KMON_NO_TUNNEL)
		return;
	tunnel_parse(info[IFLA_INFO_DATA], t);
	if (attr[IFLA_LINK_NETNSID] != NULL)
		t->cannot = KMON_TUNNEL_NAMESPACE;
}
