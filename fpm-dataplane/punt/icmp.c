/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * icmp: make ICMP and ICMPv6 errors: the part of the packet that they quote, and their rate
 * (RFC 792; RFC 1812, 4.3.2; RFC 4443, 2.4). fib/icmp.c decides whether an error may be
 * sent, and chooses its source.                                                  [punt]
 */
#include <assert.h>
#include <string.h>

#include "base/inet.h"
#include "fib/icmp.h"
#include "punt/internal.h"

#define QUOTE4 576  /* RFC 1812, 4.3.2.3: bytes of the whole error */
#define QUOTE6 1280 /* RFC 4443, 2.4 (c): bytes of the whole error */
static_assert(RTE_MBUF_DEFAULT_DATAROOM >= L2_LEN + QUOTE6, "an error fits one mbuf");

static void
icmp_fill4(struct punt *p, struct rte_mbuf *m, struct rte_mbuf *e, uint8_t type,
	   uint8_t code, uint32_t arg, const struct ipaddr *src)
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
	memcpy(ip + 12, src->octet, 4);
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
icmp_fill6(struct punt *p, struct rte_mbuf *m, struct rte_mbuf *e, uint8_t type,
	   uint8_t code, uint32_t arg, const struct ipaddr *src)
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
	/* Pseudo header: both addresses, length, next header (RFC 8200, 8.1). */
	put_be16(ip + 42, (uint16_t)~inet_fold(inet_sum(ip + 8, len - 8, len - 40 + 58)));
	e->data_len = e->pkt_len = (uint16_t)(L2_LEN + len);
}

/* Ask the policer, unless the forwarder asked it for this class of error already. */
static bool
icmp_within_rate(struct punt *p, struct rte_mbuf *m, enum punt_class class)
{
	struct packet_meta *meta = packet_meta(m);
	const uint8_t *ip = l3_of(m);
	struct class_counters *count = &p->count->class[class];
	enum policer_verdict verdict;
	uint32_t source;

	if (meta->class == class)
		return true;
	/* The key is KEY_NET, as in fwd/classify.c. */
	source = policer_source(seed_of(p->fib->seed, meta->vrf),
				meta->family == 4 ? ip + 12 : ip + 8,
				meta->family == 4 ? 4 : 8);
	verdict = policer_take(class, source, policer_ticks());
	counter_add(verdict == POLICER_PASS     ? &count->passed
		    : verdict == POLICER_SOURCE ? &count->over_share
						: &count->policed,
		    1);
	/* No other thread takes the error from a ring. */
	counter_add(&count->taken, verdict == POLICER_PASS);
	return verdict == POLICER_PASS;
}

struct rte_mbuf *
icmp_make(struct punt *p, struct rte_mbuf *m, uint8_t type, uint8_t code, uint32_t arg)
{
	struct packet_meta *meta = packet_meta(m);
	const uint8_t *ip = l3_of(m);
	unsigned int room = rte_pktmbuf_data_len(m) - L2_LEN,
		     len = meta->family == 4 ? get_be16(ip + 2) : 40u + get_be16(ip + 4);
	struct icmp_about about = {
		.ip = ip,
		.room = len < room ? len : room, /* padding is not part of the packet */
		.family = meta->family,
		.l2_group = (rte_pktmbuf_mtod(m, const uint8_t *)[0] & 1) != 0,
		.too_big = meta->family == 6 && type == 2,
		.in_ifidx = meta->in_ifidx};
	struct ipaddr src;
	struct rte_mbuf *e;

	if (icmp_refusal(p->fib, &about, &src) != NULL ||
	    !icmp_within_rate(p, m, punt_class_icmp(meta->family, type, code))) {
		counter_add(&p->count->icmp_limited, 1);
		return NULL;
	}
	e = rte_pktmbuf_alloc(p->conf.pool);
	if (e == NULL) {
		counter_add(&p->count->reason[DROP_no_mbuf], 1);
		return NULL;
	}
	/* A capture shows it if the error is dropped before it has addresses. */
	memset(rte_pktmbuf_mtod(e, uint8_t *), 0, L2_LEN - 2);
	put_be16(rte_pktmbuf_mtod(e, uint8_t *) + L2_LEN - 2,
		 meta->family == 6 ? 0x86dd : 0x0800);
	if (meta->family == 6)
		icmp_fill6(p, m, e, type, code, arg, &src);
	else
		icmp_fill4(p, m, e, type, code, arg, &src);
	counter_add(&p->count->icmp_sent, 1);
	*packet_meta(e) = (struct packet_meta){.family = meta->family,
					       .out_ifidx = meta->in_ifidx,
					       .vrf = meta->vrf,
					       .fwd = meta->fwd};
	return e;
}

struct rte_mbuf *
icmp_make_for_drop(struct punt *p, struct rte_mbuf *m, enum reason cause)
{
	struct icmp_kind error = icmp_of_drop(cause, packet_meta(m)->family);

	return error.type == 0 ? NULL : icmp_make(p, m, error.type, error.code, 0);
}
