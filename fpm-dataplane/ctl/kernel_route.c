/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decode the kernel's messages about IP routes. Most messages of a full table differ in the
 * prefix only. So the other attributes are decoded once, and the result is kept (struct
 * kept).
 */
#include "ctl/kernel_route.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/icmpv6.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/inet.h"
#include "base/kernel_event.h"
#include "ctl/hop_push.h"

#define KEPT 4096 /* a power of two */

/* One netlink attribute, or one next hop of RTA_MULTIPATH with its attributes. */
struct octets {
	const uint8_t *at;
	size_t len;
};

/*
 * The attributes of a message that the audit needs; `at` is NULL if the message has none.
 */
struct attributes {
	struct octets dst, src, oif, gateway, via, multipath, priority, table, cacheinfo,
		pref, nhid, encap, encap_type, metrics;
};

/* The decoded content of a message, without its prefix. */
struct meaning {
	struct kernel_route r;
	bool all_down; /* no next hop can be used (hop_is_down()) */
	bool all_dead; /* the kernel uses no next hop */
	bool marks;    /* hops_mark_dead() notes which next hops the kernel does not use */
	bool is_over;  /* the route has expired: the kernel does not use it */
	bool counts;   /* a FIB may have the route, so the audit compares it */
	const char *state; /* type_state() of the route, such as "blackhole" */
};

/* A decoded message: its octets without the prefix, and their meaning. */
struct kept {
	uint8_t *octets; /* NULL: the entry is empty */
	size_t len;
	struct meaning meaning;
};

struct route_decoder {
	const struct kernel_link *links;
	int n_links;
	const struct kernel_nexthops *nexthops; /* NULL: none */
	bool split4;                            /* route_decoder_set_split4() */
	struct kept kept[KEPT];
	uint8_t key[1 << 16]; /* a message without its prefix */
};

/* --- attributes ----------------------------------------------------------------------- */

static struct octets *
attribute_find(struct attributes *a, uint16_t type)
{
	switch (type & NLA_TYPE_MASK) {
	case RTA_DST:
		return &a->dst;
	case RTA_SRC:
		return &a->src;
	case RTA_OIF:
		return &a->oif;
	case RTA_GATEWAY:
		return &a->gateway;
	case RTA_VIA:
		return &a->via;
	case RTA_MULTIPATH:
		return &a->multipath;
	case RTA_PRIORITY:
		return &a->priority;
	case RTA_TABLE:
		return &a->table;
	case RTA_CACHEINFO:
		return &a->cacheinfo;
	case RTA_PREF:
		return &a->pref;
	case RTA_NH_ID:
		return &a->nhid;
	case RTA_METRICS:
		return &a->metrics;
	case RTA_ENCAP:
		return &a->encap;
	case RTA_ENCAP_TYPE:
		return &a->encap_type;
	default:
		return NULL;
	}
}

/* Cut the first attribute off `rest`. Returns false if it does not fit. */
static bool
attribute_cut(struct octets *rest, uint16_t *type, struct octets *whole,
	      struct octets *value)
{
	struct nlattr head;
	size_t step;

	if (rest->len < sizeof(head))
		return false;
	memcpy(&head, rest->at, sizeof(head));
	if (head.nla_len < sizeof(head) || head.nla_len > rest->len)
		return false;
	*type = head.nla_type;
	*whole = (struct octets){rest->at, head.nla_len};
	*value = (struct octets){rest->at + NLA_HDRLEN, head.nla_len - NLA_HDRLEN};
	step = NLA_ALIGN((size_t)head.nla_len);
	if (step > rest->len)
		step = rest->len;
	*rest = (struct octets){rest->at + step, rest->len - step};
	return true;
}

/* Find the attributes in `rest`. Returns false if they are malformed. */
static bool
attributes_take(struct octets rest, struct attributes *a)
{
	struct octets whole, value, *found;
	uint16_t type;

	*a = (struct attributes){0};
	while (rest.len > 0) {
		if (!attribute_cut(&rest, &type, &whole, &value))
			return false;
		found = attribute_find(a, type);
		if (found != NULL)
			*found = value;
	}
	return true;
}

/* Read a number of an attribute. Returns false if the attribute has another length. */
static bool
u32_take(const struct octets *value, uint32_t *out)
{
	if (value->at == NULL)
		return true;
	if (value->len != sizeof(*out))
		return false;
	memcpy(out, value->at, sizeof(*out));
	return true;
}

static bool
prefix_take(const struct octets *value, uint8_t family, uint8_t len, struct prefix *out)
{
	if (len > family_bits(family) ||
	    (len > 0 && (value->at == NULL || value->len != family_octets(family))))
		return false;
	*out = (struct prefix){.family = family, .len = len};
	if (len > 0)
		memcpy(out->addr.octet, value->at, value->len);
	prefix_mask(out);
	return true;
}

/* --- next hops ------------------------------------------------------------------------ */

static int
link_order(const void *key, const void *link)
{
	uint32_t x = *(const uint32_t *)key,
		 y = ((const struct kernel_link *)link)->ifindex;

	return (x > y) - (x < y);
}

static const struct kernel_link *
link_find(const struct route_decoder *d, uint32_t ifindex)
{
	return d->n_links == 0 ? NULL
			       : bsearch(&ifindex, d->links, (size_t)d->n_links,
					 sizeof(*d->links), link_order);
}

/*
 * Return true if a next hop with these flags (RTNH_F_*) cannot be used: it is dead or has no
 * carrier, or the interface below its interface is down. A macvlan keeps its carrier
 * (IFF_LOWER_UP) when the interface below it is set down, so the kernel sets no flag then.
 */
static bool
hop_is_down(const struct route_decoder *d, uint32_t ifindex, unsigned int flags)
{
	const struct kernel_link *link = link_find(d, ifindex);
	const struct kernel_link *below =
		link == NULL || link->below == 0 ? NULL : link_find(d, link->below);

	return (flags & (RTNH_F_DEAD | RTNH_F_LINKDOWN)) != 0 ||
	       (below != NULL && (below->flags & IFF_UP) == 0);
}

/*
 * Return the name of an interface, or a text if it has none. `text` is memory for this
 * text.
 */
static const char *
link_name(const struct route_decoder *d, uint32_t ifindex, char text[IF_NAMESIZE])
{
	const struct kernel_link *link = link_find(d, ifindex);

	if (link != NULL)
		return link->name;
	snprintf(text, IF_NAMESIZE, "if%u", ifindex);
	return text;
}

/* Format the gateway of a next hop; *via is NULL if it has none. */
static bool
gateway_take(const struct attributes *a, uint8_t family, char text[INET6_ADDRSTRLEN],
	     const char **via)
{
	struct octets address = a->gateway;
	uint16_t af = family == 4 ? AF_INET : AF_INET6;

	*via = NULL;
	if (a->via.at != NULL) {
		if (a->via.len < sizeof(af))
			return false;
		memcpy(&af, a->via.at, sizeof(af));
		address = (struct octets){a->via.at + sizeof(af), a->via.len - sizeof(af)};
	}
	if (address.at == NULL)
		return true;
	if ((af != AF_INET || address.len != 4) && (af != AF_INET6 || address.len != 16))
		return false;
	*via = inet_ntop(af, address.at, text, INET6_ADDRSTRLEN);
	return true;
}

/* Decode the labels or the headend of a next hop. Returns false if they are malformed. */
static bool
push_take(const struct attributes *a, struct hop_push *push)
{
	uint16_t type = 0;

	if (a->encap_type.at != NULL) {
		if (a->encap_type.len != sizeof(type))
			return false;
		memcpy(&type, a->encap_type.at, sizeof(type));
	}
	return push_kernel(push, type, a->encap.at, a->encap.len);
}

/*
 * Add a next hop with these flags (RTNH_F_*). A route that is not unicast has no next hops
 * in the dataplane.
 */
static bool
hop_take(struct route_decoder *d, struct meaning *m, const struct attributes *a,
	 uint32_t ifindex, unsigned int flags, long long weight, uint8_t family)
{
	char text[INET6_ADDRSTRLEN], name[IF_NAMESIZE];
	struct hop_push push;
	const char *via;

	if (!gateway_take(a, family, text, &via) || !push_take(a, &push))
		return false;
	if (ifindex == 0 || m->state != NULL)
		return true;
	hops_add(&m->r.hops, via, link_name(d, ifindex, name), push.text, weight);
	if (m->marks && (flags & RTNH_F_DEAD) != 0)
		hops_mark_dead(&m->r.hops);
	m->all_dead &= (flags & RTNH_F_DEAD) != 0;
	m->all_down &= hop_is_down(d, ifindex, flags);
	return true;
}

/* Add the next hops of RTA_MULTIPATH. */
static bool
multipath_take(struct route_decoder *d, struct meaning *m, struct octets rest,
	       uint8_t family)
{
	while (rest.len > 0) {
		struct rtnexthop hop;
		struct attributes a;
		size_t step;

		if (rest.len < sizeof(hop))
			return false;
		memcpy(&hop, rest.at, sizeof(hop));
		if (hop.rtnh_len < sizeof(hop) || hop.rtnh_len > rest.len ||
		    !attributes_take((struct octets){rest.at + sizeof(hop),
						     hop.rtnh_len - sizeof(hop)},
				     &a) ||
		    !hop_take(d, m, &a, (uint32_t)hop.rtnh_ifindex, hop.rtnh_flags,
			      hop.rtnh_hops + 1LL, family))
			return false;
		step = RTNH_ALIGN((size_t)hop.rtnh_len);
		if (step > rest.len)
			step = rest.len;
		rest = (struct octets){rest.at + step, rest.len - step};
	}
	return true;
}

/*
 * Add the next hops of an object. The weight of a member has eight bits, as in
 * RTA_MULTIPATH (weight_in_kernel() of audit_table.c).
 */
static void
object_take(struct route_decoder *d, struct meaning *m, uint32_t id, long long weight)
{
	const struct kernel_nexthop *nh =
		d->nexthops == NULL ? NULL : kernel_nexthop_find(d->nexthops, id);
	char name[IF_NAMESIZE];

	if (nh == NULL)
		return;
	for (size_t i = 0; i < nh->n_members; i++) {
		const struct kernel_nexthop *member =
			kernel_nexthop_find(d->nexthops, nh->member[i].id);

		if (member != NULL && member->n_members == 0)
			object_take(d, m, member->id, nh->member[i].weight + 1LL);
	}
	if (nh->ifindex == 0)
		return;
	hops_add(&m->r.hops, nh->via[0] != '\0' ? nh->via : NULL,
		 link_name(d, nh->ifindex, name), nh->push, weight);
	m->all_dead &= (nh->flags & RTNH_F_DEAD) != 0;
	m->all_down &= hop_is_down(d, nh->ifindex, nh->flags);
}

/* --- routes --------------------------------------------------------------------------- */

/*
 * Return the word of the dataplane for a route of this type. "": no FIB has routes of the
 * type. NULL: the route is used as a unicast route. Linux uses IPv6 routes of the types
 * broadcast, multicast, nat and xresolve as unicast routes.
 */
static const char *
type_state(uint8_t type, uint8_t family)
{
	static const char *const state[] = {
		[RTN_LOCAL] = "local",       [RTN_BROADCAST] = "broadcast",
		[RTN_ANYCAST] = "local",     [RTN_BLACKHOLE] = "blackhole",
		[RTN_PROHIBIT] = "prohibit", [RTN_UNREACHABLE] = "unreachable",
		[RTN_THROW] = "throw",       [RTN_MULTICAST] = "broadcast",
	};

	if (type == RTN_UNICAST)
		return NULL;
	if (family == 6 && (type == RTN_BROADCAST || type == RTN_MULTICAST ||
			    type == RTN_NAT || type == RTN_XRESOLVE))
		return NULL;
	return type < sizeof(state) / sizeof(state[0]) && state[type] != NULL ? state[type]
									      : "";
}

/* Take the attributes that only routes of one family have. */
static bool
condition_take(struct meaning *m, const struct rtmsg *rtm, const struct attributes *a,
	       uint8_t family)
{
	struct rta_cacheinfo cache;

	if (family == 4) {
		/* Linux never uses a route whose TOS has other bits. */
		m->is_over |= (rtm->rtm_tos & ~TOS_LOOKUP_MASK) != 0;
		if (rtm->rtm_tos != 0)
			m->r.src = tos_condition(rtm->rtm_tos);
		return true;
	}
	if (rtm->rtm_src_len > 0 && !prefix_take(&a->src, 6, rtm->rtm_src_len, &m->r.src))
		return false;
	if (a->pref.at != NULL) {
		if (a->pref.len != 1)
			return false;
		m->r.preference = a->pref.at[0] == ICMPV6_ROUTER_PREF_HIGH  ? 0
				  : a->pref.at[0] == ICMPV6_ROUTER_PREF_LOW ? 2
									    : 1;
	}
	if (a->cacheinfo.at != NULL) {
		if (a->cacheinfo.len < sizeof(cache))
			return false;
		memcpy(&cache, a->cacheinfo.at, sizeof(cache));
		m->is_over |= cache.rta_expires < 0; /* the kernel frees the route later */
	}
	return true;
}

/* Take the MTU of a route with next hops. Returns false if the attribute is malformed. */
static bool
mtu_take(struct meaning *m, const struct attributes *a, bool ip6)
{
	struct octets rest = a->metrics, whole, value;
	uint32_t mtu = 0;
	uint16_t type;

	while (rest.len > 0) {
		if (!attribute_cut(&rest, &type, &whole, &value))
			return false;
		if (type == RTAX_MTU && !u32_take(&value, &mtu))
			return false;
	}
	if (m->state == NULL && m->r.hops.n > 0)
		hops_set_mtu(&m->r.hops, ip6, mtu);
	return true;
}

/* Decode all but the prefix. Returns false if the message is malformed. */
static bool
meaning_take(struct route_decoder *d, struct meaning *m, const struct rtmsg *rtm,
	     const struct attributes *a)
{
	uint8_t family = rtm->rtm_family == AF_INET ? 4 : 6;
	uint32_t ifindex = 0, nhid = 0;
	bool well;

	hops_reset(&m->r.hops);
	*m = (struct meaning){.r = {.table = rtm->rtm_table,
				    .protocol = rtm->rtm_protocol,
				    .hops = m->r.hops},
			      .state = type_state(rtm->rtm_type, family),
			      .marks = family == 4 && a->nhid.at == NULL,
			      .all_down = true,
			      .all_dead = true};
	well = u32_take(&a->table, &m->r.table) && u32_take(&a->priority, &m->r.metric) &&
	       u32_take(&a->oif, &ifindex) && condition_take(m, rtm, a, family) &&
	       hop_take(d, m, a, ifindex, rtm->rtm_flags, 1, family) &&
	       multipath_take(d, m, a->multipath, family) && u32_take(&a->nhid, &nhid);
	if (well && nhid != 0 && m->state == NULL && m->r.hops.n == 0)
		object_take(d, m, nhid, 1);
	well = well && mtu_take(m, a, family == 6);
	if (m->state != NULL && m->state[0] != '\0')
		hops_add_kind(&m->r.hops, m->state);
	m->r.is_local = m->r.table == RT_TABLE_LOCAL;
	if (m->r.is_local)
		m->r.table = RT_TABLE_MAIN;
	/*
	 * The sysctl ignore_routes_with_linkdown makes next hops and broadcast addresses
	 * without carrier dead.
	 */
	m->r.is_down = m->state == NULL ? m->all_dead || (m->all_down &&
							  m->r.protocol == RTPROT_KERNEL)
					: strcmp(m->state, "broadcast") == 0 &&
						  (rtm->rtm_flags & RTNH_F_DEAD) != 0;
	m->counts = !m->is_over && m->r.hops.n > 0;
	return well;
}

/* Write a message without its prefix to d->key. Returns the number of octets. */
static size_t
key_write(struct route_decoder *d, const struct rtmsg *rtm, struct octets rest)
{
	struct rtmsg head = *rtm;
	size_t n = sizeof(head);
	struct octets whole, value;
	uint16_t type;

	head.rtm_dst_len = 0;
	memcpy(d->key, &head, sizeof(head));
	while (attribute_cut(&rest, &type, &whole, &value)) {
		if ((type & NLA_TYPE_MASK) == RTA_DST)
			continue;
		memcpy(d->key + n, whole.at, whole.len);
		n += whole.len;
	}
	return n;
}

static uint64_t
octets_hash(const uint8_t *octets, size_t n)
{
	uint64_t h = n, w;

	for (; n >= sizeof(w); n -= sizeof(w), octets += sizeof(w)) {
		memcpy(&w, octets, sizeof(w));
		h = mix64(h + w);
	}
	w = 0;
	memcpy(&w, octets, n);
	return mix64(h + w);
}

/* Return the meaning of a message besides its prefix; NULL: it is malformed. */
static struct meaning *
meaning_find(struct route_decoder *d, const struct rtmsg *rtm, struct octets rest,
	     const struct attributes *a)
{
	size_t len = key_write(d, rtm, rest);
	struct kept *k = &d->kept[octets_hash(d->key, len) % KEPT];

	if (k->octets != NULL && k->len == len && memcmp(k->octets, d->key, len) == 0)
		return &k->meaning;
	free(k->octets);
	k->octets = NULL;
	if (!meaning_take(d, &k->meaning, rtm, a))
		return NULL;
	k->octets = malloc(len);
	if (k->octets == NULL)
		abort();
	memcpy(k->octets, d->key, len);
	k->len = len;
	return &k->meaning;
}

struct kernel_route *
route_decode(struct route_decoder *d, const struct nlmsghdr *h, int *rc)
{
	struct rtmsg rtm;
	struct octets rest;
	struct attributes a;
	struct meaning *m;
	struct prefix p;

	*rc = -EBADMSG;
	if (h->nlmsg_len < NLMSG_LENGTH(sizeof(rtm)) || h->nlmsg_len > sizeof(d->key))
		return NULL;
	memcpy(&rtm, NLMSG_DATA(h), sizeof(rtm));
	rest = (struct octets){(const uint8_t *)h + NLMSG_SPACE(sizeof(rtm)),
			       h->nlmsg_len - NLMSG_LENGTH(sizeof(rtm))};
	if ((rtm.rtm_family != AF_INET && rtm.rtm_family != AF_INET6) ||
	    !attributes_take(rest, &a) ||
	    !prefix_take(&a.dst, rtm.rtm_family == AF_INET ? 4 : 6, rtm.rtm_dst_len, &p))
		return NULL;
	/* An exception of a route, for example a path MTU, is no route. */
	if ((rtm.rtm_flags & RTM_F_CLONED) != 0 || prefix_is_in_no_fib(&p)) {
		*rc = 0;
		return NULL;
	}
	m = meaning_find(d, &rtm, rest, &a);
	if (m == NULL)
		return NULL;
	*rc = 0;
	m->r.prefix = p;
	if ((p.family == 6 || d->split4) && m->r.is_local && m->state != NULL &&
	    strcmp(m->state, "throw") == 0)
		return NULL; /* Linux then looks up main */
	return m->counts ? &m->r : NULL;
}

struct route_decoder *
route_decoder_new(const struct kernel_link *links, int n_links)
{
	struct route_decoder *d = calloc(1, sizeof(*d));

	if (d == NULL)
		abort();
	d->links = links;
	d->n_links = n_links;
	return d;
}

void
route_decoder_set_nexthops(struct route_decoder *d, const struct kernel_nexthops *all)
{
	d->nexthops = all;
}

void
route_decoder_set_split4(struct route_decoder *d, bool split4)
{
	d->split4 = split4;
}

void
route_decoder_free(struct route_decoder *d)
{
	for (unsigned int i = 0; i < KEPT; i++) {
		free(d->kept[i].octets);
		hops_free(&d->kept[i].meaning.r.hops);
	}
	free(d);
}
