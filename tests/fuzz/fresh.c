/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * New messages, see fresh.h. Any thread may call these; they have no state but the random
 * numbers.
 */
#include "fresh.h"

#include <linux/lwtunnel.h>
#include <linux/mpls_iptunnel.h>
#include <linux/neighbour.h>

#include "control.h"

bool
once_in(struct rnd *r, uint32_t n)
{
	return rnd_below(r, n) == 0;
}

/* --- pools ---------------------------------------------------------------------------- */

uint32_t
some_id(struct rnd *r)
{
	return once_in(r, 50) ? (uint32_t)rnd_next(r) : 1 + rnd_below(r, 12);
}

uint32_t
some_group(struct rnd *r)
{
	return once_in(r, 12) ? some_id(r) : 20 + rnd_below(r, 6);
}

uint32_t
some_oif(struct rnd *r)
{
	return once_in(r, 12) ? rnd_below(r, 300) : 2 + rnd_below(r, 5);
}

static const char *
some_gateway(struct rnd *r)
{
	static const char *const pool[] = {
		"10.0.1.2",      "10.0.1.3", "10.0.2.2",    "10.0.2.9",
		"10.0.9.9",      "10.0.1.1", "169.254.0.1", "2001:db8:1::2",
		"2001:db8:2::2", "fe80::1",  "fe80::2",
	};

	return PICK(r, pool);
}

static const char *
some_prefix(struct rnd *r)
{
	static const char *const pool[] = {
		"0.0.0.0/0",
		"10.0.1.0/24",
		"10.0.1.1/32",
		"10.0.1.255/32",
		"192.0.2.0/24",
		"192.0.2.128/25",
		"192.0.2.129/32",
		"192.0.0.0/16",
		"198.51.100.0/24",
		"198.51.100.0/30",
		"203.0.113.0/24",
		"::/0",
		"2001:db8:1::/64",
		"2001:db8:f::/48",
		"2001:db8::/32",
		"2001:db8:f::1/128",
		"fe80::/64",
		"255.255.255.255/32",
		"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128",
	};

	return PICK(r, pool);
}

/*
 * Write labels: labels that put_beside() uses too, special labels, or a stack that is too
 * long.
 */
static void
attr_labels(struct wire *w, struct rnd *r, uint16_t type)
{
	uint32_t entry[18], n = once_in(r, 12) ? 1 + rnd_below(r, 18) : 1 + rnd_below(r, 3);

	for (uint32_t i = 0; i < n; i++)
		entry[i] = htonl((once_in(r, 8) ? rnd_below(r, 16) : 16 + rnd_below(r, 3))
					 << 12 |
				 (uint32_t)(i + 1 == n) << 8);
	attr(w, type, entry, n * sizeof(entry[0]));
}

static void
put_labels(struct wire *w, struct rnd *r, bool is_object)
{
	size_t nest;

	attr_u16(w, is_object ? NHA_ENCAP_TYPE : RTA_ENCAP_TYPE, LWTUNNEL_ENCAP_MPLS);
	nest = attr_nest(w, is_object ? NHA_ENCAP : RTA_ENCAP);
	attr_labels(w, r, MPLS_IPTUNNEL_DST);
	attr_nest_end(w, nest);
}

/* --- fresh messages ------------------------------------------------------------------- */

void
put_hop(struct wire *w, struct rnd *r, bool is_object)
{
	/* NHA_* and RTA_* have different numbers for the same attributes. */
	if (!once_in(r, 4))
		attr_addr(w, is_object ? NHA_GATEWAY : RTA_GATEWAY, some_gateway(r));
	else if (!is_object && once_in(r, 2))
		attr_via(w, some_gateway(r));
	if (!once_in(r, 8))
		attr_u32(w, is_object ? NHA_OIF : RTA_OIF, some_oif(r));
	if (once_in(r, 10))
		attr_u16(w, is_object ? NHA_ENCAP_TYPE : RTA_ENCAP_TYPE,
			 (uint16_t)rnd_below(r, 9));
	else if (once_in(r, 4))
		put_labels(w, r, is_object);
}

#define WEIGHT_HIGH_AT (offsetof(struct nexthop_grp, weight) + 1)

static void
put_object(struct wire *w, struct rnd *r)
{
	struct nexthop_grp grp[8];
	uint32_t n = 1 + rnd_below(r, 8);

	if (once_in(r, 5)) {
		nexthop_begin(w, RTM_DELNEXTHOP, 0,
			      once_in(r, 3) ? some_group(r) : some_id(r));
	} else if (once_in(r, 3)) {
		nexthop_begin(w, RTM_NEWNEXTHOP, AF_UNSPEC, some_group(r));
		memset(grp, 0, sizeof(grp));
		for (uint32_t i = 0; i < n; i++) {
			grp[i].id = once_in(r, 10) ? some_group(r) : some_id(r);
			grp[i].weight = (uint8_t)(once_in(r, 3) ? rnd_next(r) : 0);
			/*
			 * The high octet of the weight; its field has different names in
			 * different kernel headers.
			 */
			if (once_in(r, 20))
				((uint8_t *)&grp[i])[WEIGHT_HIGH_AT] = (uint8_t)rnd_next(r);
		}
		attr(w, NHA_GROUP, grp, n * sizeof(grp[0]));
	} else {
		nexthop_begin(w, RTM_NEWNEXTHOP,
			      once_in(r, 3)   ? AF_INET6
			      : once_in(r, 4) ? 0
					      : AF_INET,
			      some_id(r));
		if (once_in(r, 10))
			attr(w, NHA_BLACKHOLE, NULL, 0);
		else
			put_hop(w, r, true);
	}
	msg_end(w);
}

/* `label`: the next hops belong to a route of a label. */
static void
put_multipath(struct wire *w, struct rnd *r, bool label)
{
	size_t nest = attr_nest(w, RTA_MULTIPATH), at;

	for (uint32_t n = 1 + rnd_below(r, 5); n > 0; n--) {
		rtnexthop_begin(w, &at, (uint8_t)rnd_below(r, 4), (int)some_oif(r));
		if (!once_in(r, 6) && label)
			attr_via(w, some_gateway(r));
		else if (!once_in(r, 6))
			attr_addr(w, RTA_GATEWAY, some_gateway(r));
		if (label && once_in(r, 2))
			attr_labels(w, r, RTA_NEWDST);
		else if (!label && once_in(r, 8))
			put_labels(w, r, false);
		rtnexthop_end(w, at);
	}
	attr_nest_end(w, nest);
}

static void
put_mtu(struct wire *w, struct rnd *r)
{
	static const uint32_t mtu[] = {0, 1, 1280, 1400, 1500, 9000, 65535, UINT32_MAX};
	size_t nest = attr_nest(w, RTA_METRICS);

	attr_u32(w, RTAX_MTU, once_in(r, 8) ? (uint32_t)rnd_next(r) : PICK(r, mtu));
	attr_nest_end(w, nest);
}

/*
 * Write the next hop of a label's route. Without a gateway, the IP packet behind the label
 * is looked up in the table of the device.
 */
static void
put_label_hop(struct wire *w, struct rnd *r)
{
	bool has_via = !once_in(r, 4);

	if (has_via)
		attr_via(w, some_gateway(r));
	if (!once_in(r, 8))
		attr_u32(w, RTA_OIF, has_via || once_in(r, 3) ? some_oif(r) : 1);
	if (once_in(r, 2))
		attr_labels(w, r, RTA_NEWDST);
}

/* Write a message that is not about an IP route: about a label, or a MAC behind a VTEP. */
static void
put_beside(struct wire *w, struct rnd *r)
{
	struct rtmsg rtm = {.rtm_family = AF_MPLS, .rtm_dst_len = 20, .rtm_protocol = 196};
	struct ndmsg ndm = {.ndm_family = AF_BRIDGE, .ndm_ifindex = (int)some_oif(r)};
	static const char macs[] = "\2\0\0\0\0\1\2\3";
	bool del = once_in(r, 3);

	rtm.rtm_type = RTN_UNICAST;
	if (!once_in(r, 4)) {
		msg_begin(w, del ? RTM_DELROUTE : RTM_NEWROUTE);
		wire_put(w, &rtm, sizeof(rtm));
		attr_u32(w, RTA_DST, htonl((16 + rnd_below(r, 4)) << 12 | 1u << 8));
		if (once_in(r, 3))
			put_multipath(w, r, true);
		else if (once_in(r, 8))
			put_hop(w, r, false);
		else
			put_label_hop(w, r);
	} else {
		msg_begin(w, del ? RTM_DELNEIGH : RTM_NEWNEIGH);
		wire_put(w, &ndm, sizeof(ndm));
		attr(w, NDA_LLADDR, &macs[rnd_below(r, 3)], 6);
		if (once_in(r, 2))
			attr_addr(w, NDA_DST, some_gateway(r));
		if (once_in(r, 4))
			attr_u16(w, NDA_VLAN, (uint16_t)rnd_below(r, 3));
	}
	msg_end(w);
}

/* Write the route that marks the end of a replay: doc/fpm.md, 6.3. */
static void
put_sentinel(struct wire *w)
{
	route_begin(w, RTM_NEWROUTE, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128",
		    RTN_BLACKHOLE);
	msg_end(w);
}

static void
put_new_route(struct wire *w, struct rnd *r, const char *prefix)
{
	static const uint8_t type[] = {RTN_BLACKHOLE, RTN_UNREACHABLE, RTN_PROHIBIT};
	size_t at = w->len + sizeof(struct nlmsghdr);

	route_begin(w, RTM_NEWROUTE, prefix, once_in(r, 8) ? PICK(r, type) : RTN_UNICAST);
	if (once_in(r, 6))
		w->octet[at + offsetof(struct rtmsg, rtm_protocol)] = RTPROT_KERNEL;
	if (once_in(r, 10))
		attr_u32(w, RTA_TABLE, 100 + rnd_below(r, 2));
	if (once_in(r, 6))
		put_mtu(w, r);
	switch (rnd_below(r, 6)) {
	case 0:
		put_hop(w, r, false);
		break;
	case 1:
		put_multipath(w, r, false);
		break;
	case 2:
		attr_u32(w, RTA_NH_ID, some_id(r));
		break;
	default:
		attr_u32(w, RTA_NH_ID, some_group(r));
	}
	msg_end(w);
}

void
put_fresh_message(struct wire *w, struct rnd *r)
{
	const char *prefix = some_prefix(r);

	switch (rnd_below(r, 24)) {
	case 0:
		put_sentinel(w);
		return;
	case 1:
	case 2:
	case 3:
	case 4:
		put_beside(w, r);
		return;
	default:
		break;
	}
	switch (rnd_below(r, 6)) {
	case 0:
	case 1:
		put_object(w, r);
		break;
	case 2:
		put_route_del(w, prefix);
		break;
	case 3:
		put_route_del(w, prefix);
		put_new_route(w, r, once_in(r, 8) ? some_prefix(r) : prefix);
		break;
	default:
		put_new_route(w, r, prefix);
	}
}

void
put_control(struct wire *w, struct rnd *r)
{
	static const uint8_t settle[] = {CONTROL_SETTLE, 0};
	uint8_t pair[2];

	frame_begin(w);
	w->octet[w->frame + 1] = CONTROL_TYPE;
	for (uint32_t n = 1 + rnd_below(r, 4); n > 0; n--) {
		pair[0] = (uint8_t)rnd_below(r, CONTROL_N);
		pair[1] = (uint8_t)rnd_next(r);
		wire_put(w, pair, sizeof(pair));
	}
	if (once_in(r, 2))
		wire_put(w, settle, sizeof(settle));
	frame_end(w);
}

void
put_fresh(struct wire *w, struct rnd *r)
{
	if (once_in(r, 3)) {
		put_control(w, r);
		return;
	}
	frame_begin(w);
	put_fresh_message(w, r);
	frame_end(w);
}
