/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ICMP and ICMPv6 errors: whether one may be sent, what it quotes, whose address it bears.
 * RFC 792, RFC 1812 4.3.2, RFC 4443 2.4. Never an error about an error, never towards a
 * group, never faster than the policers of base/punt_class.def.                                     [punt]
 */
#include <string.h>

#include "base/inet.h"
#include "punt/internal.h"

#define QUOTE4 576  /* RFC 1812, 4.3.2.3: the error as a whole */
#define QUOTE6 1280 /* RFC 4443, 2.4 (c): the error as a whole */
static_assert(RTE_MBUF_DEFAULT_DATAROOM >= L2_LEN + QUOTE6, "an error fits one mbuf");

/* RFC 1812, 4.3.2.7 */
static bool
allowed4(const struct rte_mbuf *m, const uint8_t *ip, unsigned int room)
{
	unsigned int ihl = (ip[0] & 15u) * 4;
	uint32_t src = get_be32(ip + 12), dst = get_be32(ip + 16);

	if ((rte_pktmbuf_mtod(m, const uint8_t *)[0] & 1) != 0)
		return false; /* link-layer broadcast or multicast */
	if ((get_be16(ip + 6) & 0x1fff) != 0)
		return false; /* not the first fragment */
	if (src >> 24 == 0 || src >> 24 == 127 || src >= 0xe0000000 || dst >= 0xe0000000)
		return false;
	if (ip[9] == 1) {
		uint8_t type = room > ihl ? ip[ihl] : 255;

		/* Only queries and their answers may be complained about. */
		return type == 0 || type == 8 || (type >= 9 && type <= 10) ||
		       (type >= 13 && type <= 18);
	}
	return true;
}

/* Next header after extension headers, within `room`; 255 when it cannot be told. */
static uint8_t
upper_layer6(const uint8_t *ip, unsigned int room, unsigned int *off)
{
	uint8_t next = ip[6];
	unsigned int len;

	*off = 40;
	for (int i = 0; i < 8; i++) {
		if (next != 0 && next != 43 && next != 60 && next != 44 && next != 51)
			return next;
		if (*off + 8 > room)
			return 255;
		if (next == 44 && (get_be16(ip + *off + 2) & 0xfff8) != 0)
			return 255; /* a later fragment: what it carries is unknown */
		len = next == 44   ? 8u
		      : next == 51 ? (ip[*off + 1] + 2u) * 4
				   : (ip[*off + 1] + 1u) * 8;
		next = ip[*off];
		*off += len;
	}
	return 255;
}

/* RFC 4443, 2.4 (e) */
static bool
allowed6(const struct rte_mbuf *m, const uint8_t *ip, unsigned int room, uint8_t type)
{
	unsigned int off;
	uint8_t upper;

	if (type != 2 &&
	    ((rte_pktmbuf_mtod(m, const uint8_t *)[0] & 1) != 0 || ip[24] == 0xff))
		return false; /* packet too big may answer multicast */
	if (ip[8] == 0xff ||
	    (get_be32(ip + 8) | get_be32(ip + 12) | get_be32(ip + 16)) == 0)
		return false; /* source does not name one node */
	upper = upper_layer6(ip, room, &off);
	if (upper == 58)
		return off < room && ip[off] >= 128 && ip[off] != 137; /* error, redirect */
	return true;
}

/*
 * Source of the error: an address of the interface the packet came in by, or what that one
 * borrows (neigh/iface.c); without any IPv4 address the dummy of RFC 7600, 4.8.
 */
static uint32_t
source4(const struct punt *p, uint16_t in_ifidx)
{
	const struct fib_iface *in = fib_iface(p->fib, in_ifidx);

	return in == NULL || in->src4 == 0 ? 0xc0000008 : in->src4;
}

/* The scope of the source is that of who is told: RFC 6724, 5 (rule 2). */
static bool
source6(const struct punt *p, uint16_t in_ifidx, const uint8_t *ip, struct ipaddr *src)
{
	static const struct ipaddr none;
	const struct fib_iface *in = fib_iface(p->fib, in_ifidx);
	struct ipaddr to;

	memcpy(to.octet, ip + 8, 16);
	if (in == NULL)
		return false;
	*src = ipaddr_is_linklocal6(&to) ? in->linklocal6 : in->src6;
	return !ipaddr_equal(src, &none);
}

/* Not to ourselves, not to a broadcast address, not where no route leads. */
static bool
has_way_back(const struct punt *p, const struct packet_meta *meta, const uint8_t *ip)
{
	struct ipaddr to = {0};
	fib_path path;

	memcpy(to.octet, meta->family == 4 ? ip + 12 : ip + 8, family_octets(meta->family));
	if (meta->family == 6 && ipaddr_is_linklocal6(&to))
		return true;
	path = fib_resolve(p->fib, meta->family, &to, 0);
	return path_kind(path) == PATH_ADJ || path_kind(path) == PATH_ONLINK;
}

static void
error4(struct punt *p, struct rte_mbuf *m, struct rte_mbuf *e, uint8_t type, uint8_t code,
       uint32_t arg, uint32_t src)
{
	unsigned int quote = get_be16(l3_of(m) + 2), len;
	uint8_t *ip = l3_of(e);

	if (quote > QUOTE4 - 28)
		quote = QUOTE4 - 28;
	len = 28 + quote;
	memset(ip, 0, 28);
	ip[0] = 0x45;
	ip[1] = 0xc0; /* internetwork control: RFC 1812, 4.3.2.5 */
	put_be16(ip + 2, (uint16_t)len);
	put_be16(ip + 4, p->ip_id++);
	ip[8] = 64;
	ip[9] = 1;
	put_be32(ip + 12, src);
	memcpy(ip + 16, l3_of(m) + 12, 4);
	put_be16(ip + 10, (uint16_t)~inet_fold(inet_sum(ip, 20, 0)));
	ip[20] = type;
	ip[21] = code;
	put_be32(ip + 24, arg);
	memcpy(ip + 28, rte_pktmbuf_read(m, L2_LEN, quote, p->linear), quote);
	put_be16(ip + 22, (uint16_t)~inet_fold(inet_sum(ip + 20, len - 20, 0)));
	e->data_len = e->pkt_len = (uint16_t)(L2_LEN + len);
}

static void
error6(struct punt *p, struct rte_mbuf *m, struct rte_mbuf *e, uint8_t type, uint8_t code,
       uint32_t arg, const struct ipaddr *src)
{
	unsigned int quote = 40u + get_be16(l3_of(m) + 4), len;
	uint8_t *ip = l3_of(e);

	if (quote > QUOTE6 - 48)
		quote = QUOTE6 - 48;
	len = 48 + quote;
	memset(ip, 0, 48);
	ip[0] = 0x60;
	put_be16(ip + 4, (uint16_t)(len - 40));
	ip[6] = 58;
	ip[7] = 64;
	memcpy(ip + 8, src->octet, 16);
	memcpy(ip + 24, l3_of(m) + 8, 16);
	ip[40] = type;
	ip[41] = code;
	put_be32(ip + 44, arg);
	memcpy(ip + 48, rte_pktmbuf_read(m, L2_LEN, quote, p->linear), quote);
	/* Pseudo header: both addresses, length, next header. RFC 8200, 8.1 */
	put_be16(ip + 42, (uint16_t)~inet_fold(inet_sum(ip + 8, len - 8, len - 40 + 58)));
	e->data_len = e->pkt_len = (uint16_t)(L2_LEN + len);
}

/* Has the forwarder not asked for this very error, the policer is asked now. */
static bool
within_rate(struct punt *p, struct rte_mbuf *m, enum punt_class class)
{
	struct packet_meta *meta = packet_meta(m);
	const uint8_t *ip = l3_of(m);
	struct class_counters *count = &p->count->class[class];
	struct ipaddr net = {0};
	enum policer_verdict verdict;

	if (meta->class == class)
		return true;
	/* KEY_NET, as fwd/police.c has it; its hash may be another one. */
	memcpy(net.octet, meta->family == 4 ? ip + 12 : ip + 8, meta->family == 4 ? 4 : 8);
	verdict = policer_take(class, (uint32_t)ipaddr_hash(&net, p->fib->seed),
			       policer_ticks());
	counter_add(verdict == POLICER_PASS     ? &count->passed
		    : verdict == POLICER_SOURCE ? &count->over_share
						: &count->policed,
		    1);
	/* Nobody takes it on but we ourselves. */
	counter_add(&count->taken, verdict == POLICER_PASS);
	return verdict == POLICER_PASS;
}

void
icmp_error(struct punt *p, struct rte_mbuf *m, uint8_t type, uint8_t code, uint32_t arg)
{
	struct packet_meta *meta = packet_meta(m);
	const uint8_t *ip = l3_of(m);
	unsigned int room = rte_pktmbuf_data_len(m) - L2_LEN;
	bool v6 = meta->family == 6;
	struct ipaddr src6 = {0};
	struct rte_mbuf *e;

	if ((v6 ? !allowed6(m, ip, room, type) : !allowed4(m, ip, room)) ||
	    meta->in_ifidx == 0 || !has_way_back(p, meta, ip) ||
	    (v6 && !source6(p, meta->in_ifidx, ip, &src6)) ||
	    !within_rate(p, m, punt_class_icmp(meta->family, type, code))) {
		counter_add(&p->count->icmp_limited, 1);
		return;
	}
	e = rte_pktmbuf_alloc(p->conf.pool);
	if (e == NULL) {
		counter_add(&p->count->reason[DROP_no_mbuf], 1);
		return;
	}
	if (v6)
		error6(p, m, e, type, code, arg, &src6);
	else
		error4(p, m, e, type, code, arg, source4(p, meta->in_ifidx));
	counter_add(&p->count->icmp_sent, 1);
	*packet_meta(e) =
		(struct packet_meta){.family = meta->family, .out_ifidx = meta->in_ifidx};
	punt_forward(p, e, meta->family, true, true);
}

void
icmp_for_drop(struct punt *p, struct rte_mbuf *m, enum reason cause)
{
	/* Type and code: RFC 792 and RFC 1812 5.2.7.1; RFC 4443 3.1. */
	static const struct {
		uint8_t type4, code4, type6, code6;
	} icmp[N_DROP] = {
		[DROP_ttl] = {11, 0, 3, 0},
		[DROP_no_route] = {3, 0, 1, 0},
		[DROP_unresolved_nh] = {3, 0, 1, 0},
		[DROP_foreign_oif] = {3, 0, 1, 0},
		[DROP_unsupported_encap] = {3, 0, 1, 0},
		[DROP_egress_down] = {3, 0, 1, 0},
		[DROP_unreachable] = {3, 1, 1, 3},
		[DROP_prohibit] = {3, 13, 1, 1},
		[DROP_neigh_failed] = {3, 1, 1, 3},
		[DROP_ip6_linklocal] = {0, 0, 1, 2},
	};

	/* What has no entry is silent by design. */
	if (packet_meta(m)->family == 6 && icmp[cause].type6 != 0)
		icmp_error(p, m, icmp[cause].type6, icmp[cause].code6, 0);
	else if (packet_meta(m)->family == 4 && icmp[cause].type4 != 0)
		icmp_error(p, m, icmp[cause].type4, icmp[cause].code4, 0);
}
