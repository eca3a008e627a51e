/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * icmp: make ICMP and ICMPv6 errors, with the part of the packet that they quote, and limit
 * their rate (RFC 792; RFC 1812, 4.3.2; RFC 4443, 2.4). fib/icmp.c decides whether an error
 * may be sent, and chooses its source.                                           [punt]
 */
#include <assert.h>
#include <string.h>

#include "base/inet.h"
#include "fib/icmp.h"
#include "punt/internal.h"
#include "punt/label.h"

#define QUOTE4 576  /* RFC 1812, 4.3.2.3: bytes of the whole error */
#define QUOTE6 1280 /* RFC 4443, 2.4 (c): bytes of the whole error */
static_assert(RTE_MBUF_DEFAULT_DATAROOM >= L2_LEN + QUOTE6, "an error fits one mbuf");

#define ICMP6_PARAMETER 4 /* the type "parameter problem"; IPv4 errors do not use it */

#define EXTENSION_QUOTE 128 /* RFC 4884, 3: bytes quoted before an extension, at least */

/*
 * Return the length in bytes of the extension with the labels of a packet. 0: there are
 * none.
 */
static unsigned int
extension_bytes(const struct punt_labels *labels)
{
	return labels == NULL ? 0 : 8 + labels->n * LABEL_BYTES;
}

/*
 * Write the extension of RFC 4884, 7, with one object: the label stack of the packet as it
 * was received (RFC 4950, 3).
 */
static void
extension_fill(uint8_t *at, const struct punt_labels *labels)
{
	unsigned int bytes = extension_bytes(labels);

	memset(at, 0, 8);
	at[0] = 2 << 4; /* version */
	put_be16(at + 4, (uint16_t)(bytes - 4));
	at[6] = at[7] = 1; /* class: MPLS label stack; type: incoming */
	memcpy(at + 8, labels->entry, labels->n * LABEL_BYTES);
	put_be16(at + 2, (uint16_t)~inet_fold(inet_sum(at, bytes, 0)));
}

/*
 * Quote the packet `m` of `bytes` bytes, and add the extension, in at most `max` bytes from
 * `at` on. Return the number of bytes written. *words: the length of the quote in units of
 * `unit` bytes if there is an extension, else 0.
 */
static unsigned int
quote_fill(struct punt *p, struct rte_mbuf *m, uint8_t *at, unsigned int bytes,
	   unsigned int max, const struct punt_labels *labels, unsigned int unit,
	   uint8_t *words)
{
	unsigned int extension = extension_bytes(labels), quote = bytes;

	max -= extension;
	if (quote > max)
		quote = max;
	if (extension != 0)
		quote -= quote > EXTENSION_QUOTE ? quote % unit : 0;
	memcpy(at, rte_pktmbuf_read(m, L2_LEN, quote, p->linear), quote);
	*words = 0;
	if (extension == 0)
		return quote;
	if (quote < EXTENSION_QUOTE) {
		memset(at + quote, 0, EXTENSION_QUOTE - quote);
		quote = EXTENSION_QUOTE;
	}
	*words = (uint8_t)(quote / unit);
	extension_fill(at + quote, labels);
	return quote + extension;
}

static void
icmp_fill4(struct punt *p, struct rte_mbuf *m, struct rte_mbuf *e,
	   const struct icmp_error *error, const struct ipaddr *src)
{
	uint8_t *ip = l3_of(e), words;
	unsigned int len;

	len = 28 + quote_fill(p, m, ip + 28, get_be16(l3_of(m) + 2), QUOTE4 - 28,
			      error->labels, 4, &words);
	memset(ip, 0, 28);
	ip[0] = 0x45;
	ip[1] = icmp_tos(l3_of(m));
	put_be16(ip + 2, (uint16_t)len);
	put_be16(ip + 4, p->ip_id++);
	ip[8] = 64;
	ip[9] = 1;
	memcpy(ip + 12, src->octet, 4);
	memcpy(ip + 16, l3_of(m) + 12, 4);
	put_be16(ip + 10, (uint16_t)~inet_fold(inet_sum(ip, 20, 0)));
	ip[20] = error->type;
	ip[21] = error->code;
	put_be32(ip + 24, error->arg);
	ip[25] = words;
	put_be16(ip + 22, (uint16_t)~inet_fold(inet_sum(ip + 20, len - 20, 0)));
	e->data_len = e->pkt_len = (uint16_t)(L2_LEN + len);
}

static void
icmp_fill6(struct punt *p, struct rte_mbuf *m, struct rte_mbuf *e,
	   const struct icmp_error *error, const struct ipaddr *src)
{
	/* Packet too big has no extension: its octets 4 to 7 are the MTU. */
	const struct punt_labels *labels = error->type == 2 ? NULL : error->labels;
	uint8_t *ip = l3_of(e), words;
	unsigned int len;

	len = 48 + quote_fill(p, m, ip + 48, 40u + get_be16(l3_of(m) + 4), QUOTE6 - 48,
			      labels, 8, &words);
	memset(ip, 0, 48);
	ip[0] = 0x60;
	put_be16(ip + 4, (uint16_t)(len - 40));
	ip[6] = 58;
	ip[7] = 64;
	memcpy(ip + 8, src->octet, 16);
	memcpy(ip + 24, l3_of(m) + 8, 16);
	ip[40] = error->type;
	ip[41] = error->code;
	put_be32(ip + 44, error->arg);
	if (words != 0)
		ip[44] = words;
	/* Pseudo header: both addresses, length, next header (RFC 8200, 8.1). */
	put_be16(ip + 42, (uint16_t)~inet_fold(inet_sum(ip + 8, len - 8, len - 40 + 58)));
	e->data_len = e->pkt_len = (uint16_t)(L2_LEN + len);
}

/* Ask the policer, unless the forwarder has asked it already for this class of error. */
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
	/* No thread takes the error from a ring, so count it as taken here. */
	counter_add(&count->taken, verdict == POLICER_PASS);
	return verdict == POLICER_PASS;
}

struct rte_mbuf *
icmp_make(struct punt *p, struct rte_mbuf *m, const struct icmp_error *error)
{
	const struct punt_labels *labels = error->labels;
	struct packet_meta *meta = packet_meta(m);
	const uint8_t *ip = l3_of(m);
	unsigned int room = rte_pktmbuf_data_len(m) - L2_LEN,
		     len = meta->family == 4 ? get_be16(ip + 2) : 40u + get_be16(ip + 4);
	struct icmp_about about = {
		.ip = ip,
		.room = len < room ? len : room, /* padding is not part of the packet */
		.family = meta->family,
		.l2_group = (rte_pktmbuf_mtod(m, const uint8_t *)[0] & 1) != 0,
		.too_big = meta->family == 6 && error->type == 2,
		.in_ifidx = meta->in_ifidx,
		.labels = labels == NULL ? NULL : &labels->lead};
	struct icmp_labels lead;
	struct ipaddr src;
	struct rte_mbuf *e;

	if (labels == NULL && meta->in_ifidx != 0 &&
	    meta->vrf != fib_vrf_of(p->fib, meta->in_ifidx)) {
		lead = icmp_lead_in_vrf(p->fib, meta->vrf, meta->family, ip);
		about.labels = &lead;
	}
	if (icmp_refusal(p->fib, &about, &src) != NULL ||
	    !icmp_within_rate(p, m,
			      punt_class_icmp(meta->family, error->type, error->code))) {
		counter_add(&p->count->icmp_limited, 1);
		return NULL;
	}
	e = rte_pktmbuf_alloc(p->conf.pool);
	if (e == NULL) {
		counter_add(&p->count->reason[DROP_no_mbuf], 1);
		return NULL;
	}
	/*
	 * Clear the MAC addresses: a capture shows them if the error is dropped before they
	 * are set.
	 */
	memset(rte_pktmbuf_mtod(e, uint8_t *), 0, L2_LEN - 2);
	put_be16(rte_pktmbuf_mtod(e, uint8_t *) + L2_LEN - 2,
		 meta->family == 6 ? 0x86dd : 0x0800);
	if (meta->family == 6)
		icmp_fill6(p, m, e, error, &src);
	else
		icmp_fill4(p, m, e, error, &src);
	counter_add(&p->count->icmp_sent, 1);
	*packet_meta(e) = (struct packet_meta){
		.family = meta->family,
		.out_ifidx = meta->in_ifidx,
		.vrf = labels != NULL && labels->lead.end_here ? labels->lead.vrf
							       : meta->vrf,
		.fwd = meta->fwd};
	return e;
}

struct rte_mbuf *
icmp_make_for_drop(struct punt *p, struct rte_mbuf *m, enum reason cause,
		   const struct punt_labels *labels)
{
	struct icmp_kind kind = icmp_of_drop(cause, packet_meta(m)->family);
	struct icmp_error error = {kind.type, kind.code, 0, labels};

	if (cause == DROP_filter) {
		error.type = packet_meta(m)->reject_type;
		error.code = packet_meta(m)->reject_code;
	}
	if (error.type == ICMP6_PARAMETER)
		error.arg = packet_meta(m)->mtu_bytes;
	return error.type == 0 ? NULL : icmp_make(p, m, &error);
}
