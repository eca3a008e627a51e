/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Build a stream of FPM frames octet by octet. The tests of fpm share this. It is a header,
 * so that the link line of a test names only the tested files.
 */
#ifndef TEST_FPM_BUILD_H
#define TEST_FPM_BUILD_H

#include <arpa/inet.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "base/fpm_event.h"
#include "fpm/frame.h"

#define ZEBRA_PID 4242u

struct wire {
	uint8_t octet[1 << 17];
	size_t len;
	size_t frame, msg; /* offsets of the open frame and message */
};

static inline void
wire_put(struct wire *w, const void *p, size_t len)
{
	if (w->len + len > sizeof(w->octet))
		abort();
	if (len > 0)
		memcpy(w->octet + w->len, p, len);
	w->len += len;
}

static inline void
wire_align(struct wire *w)
{
	while ((w->len - w->frame) % 4 != 0)
		wire_put(w, "", 1);
}

static inline void
frame_begin(struct wire *w)
{
	w->frame = w->len;
	wire_put(w, "\1\1\0\0", 4);
}

static inline void
frame_end(struct wire *w)
{
	size_t len = w->len - w->frame;

	w->octet[w->frame + 2] = (uint8_t)(len >> 8);
	w->octet[w->frame + 3] = (uint8_t)len;
}

static inline void
msg_begin(struct wire *w, uint16_t type)
{
	struct nlmsghdr h = {.nlmsg_type = type,
			     .nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE,
			     .nlmsg_pid = ZEBRA_PID};

	w->msg = w->len;
	wire_put(w, &h, sizeof(h));
}

static inline void
msg_end(struct wire *w)
{
	uint32_t len = (uint32_t)(w->len - w->msg);

	memcpy(w->octet + w->msg, &len, sizeof(len));
	wire_align(w);
}

static inline void
attr(struct wire *w, uint16_t type, const void *p, size_t len)
{
	struct nlattr a = {.nla_len = (uint16_t)(sizeof(a) + len), .nla_type = type};

	wire_put(w, &a, sizeof(a));
	wire_put(w, p, len);
	wire_align(w);
}

static inline void
attr_u32(struct wire *w, uint16_t type, uint32_t v)
{
	attr(w, type, &v, sizeof(v));
}

static inline void
attr_u16(struct wire *w, uint16_t type, uint16_t v)
{
	attr(w, type, &v, sizeof(v));
}

/* Add an address of either family. Return its AF_*. */
static inline int
attr_addr(struct wire *w, uint16_t type, const char *text)
{
	int af = strchr(text, ':') != NULL ? AF_INET6 : AF_INET;
	uint8_t a[16];

	if (inet_pton(af, text, a) != 1)
		abort();
	attr(w, type, a, af == AF_INET ? 4 : 16);
	return af;
}

static inline void
attr_via(struct wire *w, const char *text)
{
	uint8_t v[18];
	uint16_t af = strchr(text, ':') != NULL ? AF_INET6 : AF_INET;

	memcpy(v, &af, 2);
	if (inet_pton(af, text, v + 2) != 1)
		abort();
	attr(w, RTA_VIA, v, af == AF_INET ? 6 : 18);
}

/* Open a nested attribute. Return the argument for attr_nest_end(). */
static inline size_t
attr_nest(struct wire *w, uint16_t type)
{
	size_t at = w->len;

	attr(w, type, NULL, 0);
	return at;
}

static inline void
attr_nest_end(struct wire *w, size_t at)
{
	uint16_t len = (uint16_t)(w->len - at);

	memcpy(w->octet + at, &len, sizeof(len));
}

/*
 * Open a route message with header, RTA_DST and RTA_PRIORITY. The caller adds attributes
 * and ends it.
 */
static inline void
route_begin(struct wire *w, uint16_t type, const char *prefix, uint8_t rtm_type)
{
	struct rtmsg rtm = {.rtm_table = RT_TABLE_MAIN, .rtm_protocol = 186};
	struct prefix p;

	if (prefix_parse(prefix, &p, NULL) < 0)
		abort();
	rtm.rtm_family = p.family == 4 ? AF_INET : AF_INET6;
	rtm.rtm_dst_len = p.len;
	rtm.rtm_type = rtm_type;
	msg_begin(w, type);
	wire_put(w, &rtm, sizeof(rtm));
	attr(w, RTA_DST, p.addr.octet, family_octets(p.family));
	attr_u32(w, RTA_PRIORITY, 20);
}

static inline void
put_route(struct wire *w, const char *prefix, uint32_t nhid)
{
	route_begin(w, RTM_NEWROUTE, prefix, RTN_UNICAST);
	attr_u32(w, RTA_NH_ID, nhid);
	msg_end(w);
}

static inline void
put_route_del(struct wire *w, const char *prefix)
{
	route_begin(w, RTM_DELROUTE, prefix, RTN_UNSPEC);
	msg_end(w);
}

static inline void
nexthop_begin(struct wire *w, uint16_t type, uint8_t af, uint32_t id)
{
	struct nhmsg nhm = {.nh_family = af, .nh_protocol = RTPROT_ZEBRA};

	msg_begin(w, type);
	wire_put(w, &nhm, sizeof(nhm));
	attr_u32(w, NHA_ID, id);
}

static inline void
put_nexthop(struct wire *w, uint32_t id, const char *gw, uint32_t oif)
{
	nexthop_begin(w, RTM_NEWNEXTHOP, strchr(gw, ':') != NULL ? AF_INET6 : AF_INET, id);
	attr_addr(w, NHA_GATEWAY, gw);
	attr_u32(w, NHA_OIF, oif);
	msg_end(w);
}

static inline void
rtnexthop_begin(struct wire *w, size_t *at, uint8_t hops, int oif)
{
	struct rtnexthop nh = {
		.rtnh_len = sizeof(nh), .rtnh_hops = hops, .rtnh_ifindex = oif};

	*at = w->len;
	wire_put(w, &nh, sizeof(nh));
}

static inline void
rtnexthop_end(struct wire *w, size_t at)
{
	uint16_t len = (uint16_t)(w->len - at);

	memcpy(w->octet + at, &len, sizeof(len));
}

/* Add frames of one message each, for every kind of message that becomes an event. */
static inline void
put_samples(struct wire *w)
{
	struct nexthop_grp grp[] = {{.id = 1}, {.id = 2, .weight = 254}};
	size_t nest, hop;

	frame_begin(w);
	put_nexthop(w, 1, "192.0.2.1", 2);
	frame_end(w);
	frame_begin(w);
	put_nexthop(w, 2, "fe80::1", 3);
	frame_end(w);
	frame_begin(w);
	nexthop_begin(w, RTM_NEWNEXTHOP, AF_UNSPEC, 3);
	attr(w, NHA_GROUP, grp, sizeof(grp));
	msg_end(w);
	frame_end(w);
	frame_begin(w);
	nexthop_begin(w, RTM_NEWNEXTHOP, AF_INET, 4);
	attr(w, NHA_BLACKHOLE, NULL, 0);
	msg_end(w);
	frame_end(w);
	frame_begin(w);
	nexthop_begin(w, RTM_NEWNEXTHOP, AF_INET, 5);
	attr_u32(w, NHA_OIF, 2);
	attr_u16(w, NHA_ENCAP_TYPE, 1);
	nest = attr_nest(w, NHA_ENCAP);
	attr_u32(w, 1, htonl(16u << 12 | 1u << 8));
	attr_nest_end(w, nest);
	msg_end(w);
	frame_end(w);

	frame_begin(w);
	put_route_del(w, "198.51.100.0/24");
	put_route(w, "198.51.100.0/24", 3);
	frame_end(w);
	frame_begin(w);
	put_route(w, "2001:db8::/32", 2);
	frame_end(w);
	frame_begin(w);
	route_begin(w, RTM_NEWROUTE, "203.0.113.0/24", RTN_UNICAST);
	attr_u32(w, RTA_TABLE, 1000);
	nest = attr_nest(w, RTA_METRICS);
	attr_u32(w, RTAX_MTU, 1400);
	attr_nest_end(w, nest);
	attr_via(w, "fe80::2");
	attr_u32(w, RTA_OIF, 7);
	msg_end(w);
	frame_end(w);
	frame_begin(w);
	route_begin(w, RTM_NEWROUTE, "2001:db8:1::/48", RTN_UNICAST);
	nest = attr_nest(w, RTA_MULTIPATH);
	rtnexthop_begin(w, &hop, 4, 2);
	attr_addr(w, RTA_GATEWAY, "2001:db8::1");
	rtnexthop_end(w, hop);
	rtnexthop_begin(w, &hop, 249, 3);
	attr_u16(w, RTA_ENCAP_TYPE, 5);
	attr_addr(w, RTA_GATEWAY, "2001:db8::2");
	rtnexthop_end(w, hop);
	attr_nest_end(w, nest);
	msg_end(w);
	frame_end(w);
	frame_begin(w);
	route_begin(w, RTM_NEWROUTE, "192.0.2.128/25", RTN_BLACKHOLE);
	msg_end(w);
	frame_end(w);
	frame_begin(w);
	nexthop_begin(w, RTM_DELNEXTHOP, AF_UNSPEC, 4);
	msg_end(w);
	frame_end(w);
}

#endif
