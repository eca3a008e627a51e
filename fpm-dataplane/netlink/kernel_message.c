/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decode messages of the kernel. They are like zebra's, but have more types, several routes
 * of one prefix, and flags for the place of a new route among these routes. Any thread, no
 * state, no log.
 */
#include "netlink/kernel_message.h"

#include <linux/nexthop.h>
#include <linux/rtnetlink.h>

#include "base/inet.h"
#include "base/mpls_entry.h"
#include "netlink/hops.h"

/* A tick of rta_expires is 1 / USER_HZ: 10 ms on all architectures that DPDK supports. */
#define TICK_MS   10u
#define TICKS_DAY (24u * 60 * 60 * 100)

/*
 * Return the route type by which the kernel treats packets in transit; RTN_UNSPEC: it does
 * not treat them by this route. The kernel treats an IPv6 route as unicast unless the route
 * is for this host or refuses packets (ip6_route_info_create()). The kernel drops IPv4
 * packets in transit that match a broadcast or multicast route, without an ICMP error
 * (ip_route_input_slow()).
 */
static uint8_t
type_in_transit(uint8_t type, uint8_t family)
{
	switch (type) {
	case RTN_UNICAST:
	case RTN_LOCAL:
	case RTN_ANYCAST:
	case RTN_BLACKHOLE:
	case RTN_UNREACHABLE:
	case RTN_PROHIBIT:
	case RTN_THROW:
		return type;
	case RTN_BROADCAST:
	case RTN_MULTICAST:
		return family == 6 ? RTN_UNICAST : RTN_BROADCAST;
	case RTN_NAT:
	case RTN_XRESOLVE:
		return family == 6 ? RTN_UNICAST : RTN_UNSPEC;
	default:
		return RTN_UNSPEC;
	}
}

static enum kernel_order
message_order(const struct nlmsghdr *nlh, uint8_t family, bool dump)
{
	if (dump)
		return KERNEL_LISTED;
	if ((nlh->nlmsg_flags & NLM_F_REPLACE) != 0)
		return KERNEL_REPLACE;
	if (family == 6 || (nlh->nlmsg_flags & NLM_F_APPEND) != 0)
		return KERNEL_LAST;
	return KERNEL_FIRST;
}

/*
 * Set the remaining lifetime of a route in milliseconds. Returns false if it has expired.
 */
static bool
message_life(const struct attrs *attrs, uint32_t *expires_ms)
{
	struct rta_cacheinfo info;

	*expires_ms = 0;
	if (attr_copy(attr_of(attrs, RTA_CACHEINFO), &info, sizeof(info)) < 0 ||
	    info.rta_expires == 0)
		return true;
	/* The kernel rounds to ticks, so wait some ticks more. */
	if (info.rta_expires > 0)
		*expires_ms = ((uint32_t)info.rta_expires < TICKS_DAY
				       ? (uint32_t)info.rta_expires + 4
				       : TICKS_DAY) *
			      TICK_MS;
	return info.rta_expires > 0;
}

/*
 * Read the preference of an IPv6 route (RFC 4191, 2.1): high 0, medium 1, low 2. Returns 0
 * or -EBADMSG.
 */
static int
message_preference(struct kernel_event *ev, const struct attrs *attrs)
{
	enum { MEDIUM, HIGH, RESERVED, LOW };
	uint8_t preference = MEDIUM;

	if (attrs_copy(attrs, RTA_PREF, &preference, sizeof(preference)) < 0)
		return -EBADMSG;
	ev->preference = preference == HIGH ? 0 : preference == LOW ? 2 : 1;
	return 0;
}

/* Read RTA_SRC, the source prefix of a source-specific IPv6 route. */
static int
message_source(struct prefix *src, const struct attrs *attrs, uint8_t family, uint8_t len)
{
	src->family = family;
	src->len = len;
	if (len == 0)
		return 0;
	if (len > family_bits(family) ||
	    attrs_copy(attrs, RTA_SRC, src->addr.octet, family_octets(family)) < 0)
		return -EBADMSG;
	prefix_mask(src);
	return 0;
}

static uint32_t
hash_attr(uint32_t hash, const struct nlattr *a)
{
	return a == NULL ? hash : fnv1a(hash, a, a->nla_len);
}

/* Add the next hops of RTA_MULTIPATH, without flags that follow the links. */
static uint32_t
hash_multipath(uint32_t hash, const struct nlattr *multipath)
{
	const uint8_t *p = mnl_attr_get_payload(multipath);
	size_t left = mnl_attr_get_payload_len(multipath), step;
	struct rtnexthop hop;

	while (left >= sizeof(hop)) {
		memcpy(&hop, p, sizeof(hop));
		if (hop.rtnh_len < sizeof(hop) || hop.rtnh_len > left)
			break;
		hop.rtnh_flags &= RTNH_F_ONLINK;
		hash = fnv1a(hash, &hop, sizeof(hop));
		hash = fnv1a(hash, p + sizeof(hop), hop.rtnh_len - sizeof(hop));
		step = MNL_ALIGN(hop.rtnh_len);
		if (step >= left)
			break;
		p += step;
		left -= step;
	}
	return hash;
}

/*
 * Return kernel_event.details. The message of a route with a next-hop id also has the next
 * hops of the next-hop object. They change with the object, so that only the id counts.
 */
static uint32_t
message_details(const struct attrs *attrs, unsigned int flags)
{
	uint32_t hash = hash_attr(FNV1A_BEGIN, attr_of(attrs, RTA_METRICS));

	if (attrs_have(attrs, RTA_NH_ID)) {
		hash = hash_attr(hash, attr_of(attrs, RTA_NH_ID));
	} else {
		flags &= RTNH_F_ONLINK;
		hash = fnv1a(hash, &flags, sizeof(flags));
		hash = hash_attr(hash, attr_of(attrs, RTA_FLOW));
		if (attrs_have(attrs, RTA_MULTIPATH))
			hash = hash_multipath(hash, attr_of(attrs, RTA_MULTIPATH));
	}
	return hash != 0 ? hash : 1;
}

/*
 * Decode a route of an MPLS label. Linux has at most one route for each label, so an event
 * or a dump replaces the earlier route. Labels below 16 are reserved and have special
 * meanings.
 */
static int
decode_label(const struct rtmsg *rtm, const struct attrs *attrs, bool del,
	     struct kernel_event *ev)
{
	int rc = message_label(rtm, attrs, del, &ev->route);

	if (rc != TAKEN)
		return rc;
	if (get_be32(ev->route.prefix.addr.octet) < LABEL_SPECIAL_END)
		return KERNEL_SKIP;
	ev->kind = del ? KERNEL_ROUTE_DEL : KERNEL_ROUTE;
	ev->order = KERNEL_REPLACE;
	return KERNEL_TAKEN;
}

static int
decode_route(const struct nlmsghdr *nlh, bool dump, struct kernel_event *ev,
	     uint32_t *expires_ms)
{
	const struct rtmsg *rtm = mnl_nlmsg_get_payload(nlh);
	bool del = nlh->nlmsg_type == RTM_DELROUTE;
	struct fpm_event *r = &ev->route;
	struct attrs attrs;
	uint8_t family, type;

	if (message_attrs(nlh, sizeof(*rtm), &attrs) < 0)
		return -EBADMSG;
	if (rtm->rtm_family == AF_MPLS)
		return decode_label(rtm, &attrs, del, ev);
	family = family_of_af(rtm->rtm_family);
	if (family == 0 || (rtm->rtm_flags & RTM_F_CLONED) != 0)
		return KERNEL_SKIP;
	type = type_in_transit(rtm->rtm_type, family);
	if (type == RTN_UNSPEC)
		return KERNEL_SKIP;
	if (message_prefix(&r->prefix, &attrs, family, rtm->rtm_dst_len) < 0)
		return -EBADMSG;
	if (prefix_is_in_no_fib(&r->prefix))
		return KERNEL_SKIP;
	if (message_source(&ev->src, &attrs, family, rtm->rtm_src_len) < 0)
		return -EBADMSG;
	r->table = rtm->rtm_table;
	r->protocol = rtm->rtm_protocol;
	if (attrs_copy(&attrs, RTA_TABLE, &r->table, sizeof(r->table)) < 0 ||
	    attrs_copy(&attrs, RTA_PRIORITY, &ev->metric, sizeof(ev->metric)) < 0 ||
	    attrs_copy(&attrs, RTA_OIF, &ev->ifindex, sizeof(ev->ifindex)) < 0 ||
	    (family == 4 &&
	     attrs_copy(&attrs, RTA_PREFSRC, &ev->source4, sizeof(ev->source4)) < 0) ||
	    message_preference(ev, &attrs) < 0)
		return -EBADMSG;
	ev->is_local = r->table == RT_TABLE_LOCAL;
	if (ev->is_local || r->table == RT_TABLE_UNSPEC)
		r->table = RT_TABLE_MAIN;
	if (table_is_reserved(r->table))
		return KERNEL_SKIP;
	if ((rtm->rtm_tos & ~TOS_LOOKUP_MASK) != 0)
		return KERNEL_SKIP;
	if (rtm->rtm_tos != 0 && family == 4)
		ev->src = tos_condition(rtm->rtm_tos);
	ev->kind = del ? KERNEL_ROUTE_DEL : KERNEL_ROUTE;
	ev->order = (uint8_t)message_order(nlh, family, dump);
	ev->scope = rtm->rtm_scope;
	if (family == 4)
		ev->details = message_details(&attrs, rtm->rtm_flags);
	r->kind = del ? FPM_ROUTE_DEL : FPM_ROUTE;
	r->rtm_type = type;
	if (!message_life(&attrs, expires_ms) && !del) {
		if (dump)
			return KERNEL_SKIP_EXPIRED;
		/* Linux no longer uses the route, and deletes it later. */
		ev->kind = KERNEL_ROUTE_DEL;
		r->kind = FPM_ROUTE_DEL;
	}
	if (attrs_have(&attrs, RTA_METRICS) &&
	    message_mtu(r, attr_of(&attrs, RTA_METRICS)) < 0)
		return -EBADMSG;
	/* The kernel shows a route by an object that is a blackhole as a blackhole. */
	if (type == RTN_BLACKHOLE &&
	    attrs_copy(&attrs, RTA_NH_ID, &r->nhid, sizeof(r->nhid)) < 0)
		return -EBADMSG;
	return type == RTN_UNICAST ? message_hops(r, &attrs, rtm->rtm_flags) : KERNEL_TAKEN;
}

static int
decode_nexthop(const struct nlmsghdr *nlh, struct kernel_event *ev)
{
	const struct nhmsg *nhm = mnl_nlmsg_get_payload(nlh);
	struct attrs attrs;

	if (message_attrs(nlh, sizeof(*nhm), &attrs) < 0)
		return -EBADMSG;
	if (attrs_have(&attrs, NHA_FDB))
		return KERNEL_SKIP; /* a remote end of a VXLAN, not a next hop of routes */
	ev->kind = nlh->nlmsg_type == RTM_NEWNEXTHOP ? KERNEL_NEXTHOP : KERNEL_NEXTHOP_DEL;
	ev->route.protocol = nhm->nh_protocol;
	return message_nexthop(nlh, &ev->route);
}

int
kernel_message_decode(const struct nlmsghdr *nlh, bool dump, struct kernel_event *ev,
		      uint32_t *expires_ms)
{
	*expires_ms = 0;
	switch (nlh->nlmsg_type) {
	case RTM_NEWROUTE:
	case RTM_DELROUTE:
		return decode_route(nlh, dump, ev, expires_ms);
	case RTM_NEWNEXTHOP:
	case RTM_DELNEXTHOP:
		return decode_nexthop(nlh, ev);
	default:
		return KERNEL_SKIP_TYPE;
	}
}
