/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loops for usual packets into and out of tunnels (fwd/tunnel_fast.c) give the result of
 * fwd/tunnel.c, octet by octet, for random bursts. The second router has no fast path.
 *
 * link: fpm-dataplane/fwd/ fpm-dataplane/fib/ fpm-dataplane/base/ fpm-dataplane/port/watch.c
 * link: fpm-dataplane/ruleset/
 * link: fpm-dataplane/port/rxq.c
 * link: poptrie/
 */
#include "tunnel_bed.h"

#include "fwd_isas.h"

#define ROUNDS   1500
#define BUFFER   2048
#define HEADROOM 128

/* The packets of one router. */
struct side {
	struct fwd fwd;
	struct counters count;
	struct burst burst, inside;
	struct {
		struct rte_mbuf m;
		struct packet_meta meta;
		uint8_t buffer[BUFFER];
	} packet[BURST_MAX];
};

static struct side fast, slow;
static unsigned int n_into, n_out, n_odd;

static unsigned int
below(unsigned int n)
{
	return (unsigned int)random() % n;
}

static void
checksum_set(uint8_t *ip)
{
	put_be16(ip + 10, 0);
	put_be16(ip + 10, (uint16_t)~inet_fold(inet_sum(ip, 20, 0)));
}

/* --- packets ------------------------------------------------------------------------------ */

/* Write a packet of a random family and return its length. */
static unsigned int
packet_write(uint8_t *ip, bool back, uint8_t family)
{
	unsigned int len = family == 4 ? 20 + below(60) : 48 + below(60);

	if (below(8) == 0)
		len = 1400 + below(80);
	inner_write(ip, family, len, back);
	if (below(10) == 0)
		ip[family == 4 ? 8 : 7] = (uint8_t)below(3);
	if (family == 4 && below(3) == 0)
		ip[6] = 0x40; /* DF */
	if (family == 6 && below(10) == 0)
		ip[6] = below(2) == 0 ? 0 : PROTO_IP6_OPTS;
	if (family == 4)
		checksum_set(ip);
	if (below(20) == 0)
		ip[below(len)] ^= (uint8_t)(1 + below(255));
	return len;
}

/* Write the outer header of a tunnel from its far end, and return its length. */
static unsigned int
outer_write(uint8_t *out, const struct fib_tunnel *t, uint8_t family, unsigned int len)
{
	memcpy(out, t->head, t->bytes);
	if (t->gre)
		put_be16(out + t->proto_at, family == 4 ? 0x0800 : 0x86dd);
	else
		out[t->proto_at] = family == 4 ? PROTO_IP4 : PROTO_IP6;
	if (t->family == 4) {
		put_be16(out + 2, (uint16_t)(t->bytes + len));
		out[8] = 60;
		memcpy(out + 12, t->remote.octet, 4);
		memcpy(out + 16, t->local.octet, 4);
		out[1] = (uint8_t)(below(6) == 0 ? below(4) : 0); /* ECN */
		checksum_set(out);
	} else {
		put_be16(out + 4, (uint16_t)(t->bytes - 40 + len));
		out[7] = 60;
		memcpy(out + 8, t->remote.octet, 16);
		memcpy(out + 24, t->local.octet, 16);
	}
	return t->bytes;
}

/* Write the same frame into both routers: a packet for a tunnel, or one that came in it. */
static void
frame_write(unsigned int i, uint16_t in, uint16_t tunnel)
{
	uint8_t *eth = fast.packet[i].buffer + HEADROOM, *ip = eth + 14;
	const struct fib_tunnel *t = &fib->iface[tunnel]->tunnel;
	uint8_t family = below(3) == 0 ? 6 : 4;
	unsigned int len;

	memset(fast.packet[i].buffer, 0, HEADROOM + 64);
	if (in == LAN) {
		len = packet_write(ip, false, family);
	} else {
		len = packet_write(ip + t->bytes, true, family);
		len += outer_write(ip, t, family, len);
	}
	memcpy(eth, in == LAN ? lan_mac : wan_mac, 6);
	memcpy(eth + 6, in == LAN ? lan_peer : wan_peer, 6);
	put_be16(eth + 12, (in == LAN ? family : t->family) == 4 ? 0x0800 : 0x86dd);
	len += 14;
	if (len < 60) {
		memset(eth + len, 0, 60 - len);
		len = 60;
	}
	fast.packet[i].m = (struct rte_mbuf){.buf_addr = fast.packet[i].buffer,
					     .buf_len = BUFFER,
					     .data_off = HEADROOM,
					     .data_len = (uint16_t)len,
					     .pkt_len = len,
					     .nb_segs = 1,
					     .priv_size = PACKET_PRIV_BYTES};
	if (below(40) == 0)
		fast.packet[i].m.data_off -= 100; /* no room for headers */
	rte_mbuf_refcnt_set(&fast.packet[i].m, 2);
	memmove(rte_pktmbuf_mtod(&fast.packet[i].m, uint8_t *), eth, len);
	memcpy(&slow.packet[i], &fast.packet[i], sizeof(slow.packet[i]));
	slow.packet[i].m.buf_addr = slow.packet[i].buffer;
}

/* --- both routers ------------------------------------------------------------------------- */

static void
fast_path_set(bool on)
{
	for (uint16_t i = 0; i <= T6; i++)
		if (fib->iface[i] != NULL)
			fib->iface[i]->fast4 = fib->iface[i]->fast6 = on;
}

/* Pass the outer packets, then those inside them, if they are of one tunnel. */
static void
side_walk(struct side *s, unsigned int n, uint16_t in, bool on)
{
	struct fwd_opened opened[BURST_MAX];
	unsigned int n_opened = 0;

	fast_path_set(on);
	memset((void *)fib->adj_used, 0, 4);
	memset(&s->fwd, 0, offsetof(struct fwd, tx));
	s->fwd.fib = fib;
	s->fwd.tries = &fib->copy[0];
	s->fwd.count = &s->count;
	s->fwd.adj_used = fib->adj_used;
	s->burst.fwd = &s->fwd;
	s->burst.n = (uint16_t)n;
	s->burst.ifidx = in;
	s->burst.inside = false;
	for (unsigned int i = 0; i < n; i++)
		s->burst.m[i] = &s->packet[i].m;
	burst_look(&s->burst);
	fwd_walk(&s->burst, NULL);
	for (unsigned int i = 0; i < n; i++)
		if (s->burst.verdict[i] == VERDICT_OPENED)
			opened[n_opened++] = fwd_tunnel_opened(&s->burst, i);
	s->inside.n = 0;
	if (n_opened == 0)
		return;
	assert_int_equal(fwd_tunnel_enter(&s->fwd, &s->inside, opened, n_opened), 0);
	fwd_walk(&s->inside, NULL);
}

/* Let identifications be equal: the order in which a burst is written does not matter. */
static void
id_clear(struct rte_mbuf *m)
{
	uint8_t *eth = rte_pktmbuf_mtod(m, uint8_t *);

	if (get_be16(eth + 12) == 0x0800) {
		put_be16(eth + 18, 0);
		put_be16(eth + 24, 0);
	}
}

static void
bursts_are_alike(const struct burst *a, const struct burst *c)
{
	assert_int_equal(a->n, c->n);
	for (unsigned int i = 0; i < a->n; i++) {
		struct rte_mbuf *m = a->m[i], *k = c->m[i];

		assert_int_equal(a->verdict[i], c->verdict[i]);
		assert_int_equal(m->data_off, k->data_off);
		assert_int_equal(m->data_len, k->data_len);
		assert_int_equal(m->pkt_len, k->pkt_len);
		if (a->verdict[i] == VERDICT_GO) {
			assert_true(a->hop[i] == c->hop[i]);
			id_clear(m);
			id_clear(k);
		} else if (a->verdict[i] == PUNT_unreach ||
			   a->verdict[i] == PUNT_ttl_expired) {
			assert_int_equal(a->cause[i], c->cause[i]);
		}
		assert_memory_equal(rte_pktmbuf_mtod(m, uint8_t *),
				    rte_pktmbuf_mtod(k, uint8_t *), m->data_len);
	}
}

static uint16_t
tunnel_make(void)
{
	switch (below(6)) {
	case 0:
		gre4(0x01020304);
		return T4;
	case 1:
		ip4();
		return T4;
	case 2:
		over6(false, true);
		return T6;
	case 3:
		over6(true, below(2) == 0)->flow_inherit = true;
		return T6;
	default:
		gre4(0)->df = below(2) == 0;
		return T4;
	}
}

static void
usual_packets_and_others_agree(void **state)
{
	srandom(41);
	n_into = n_out = n_odd = 0;
	for (unsigned int round = 0; round < ROUNDS; round++) {
		uint16_t tunnel = tunnel_make(), in = below(2) == 0 ? LAN : WAN;
		unsigned int n = 1 + below(BURST_MAX);
		uint64_t usual, inside;

		fib->group[10] = fib->group[14] =
			group_word_single(PATH(PATH_ONLINK, tunnel));
		fib->iface[WAN]->mtu_bytes = fib->iface[WAN]->mtu6_bytes =
			below(2) == 0 ? 1440 : 1500;
		fib->adj[2].hop = below(20) == 0 ? 0 : adj_hop_make(wan_peer, WAN);
		for (unsigned int i = 0; i < n; i++)
			frame_write(i, in, tunnel);
		side_walk(&fast, n, in, true);
		side_walk(&slow, n, in, false);
		usual = fast.burst.into & (fast.burst.fast4 | fast.burst.fast6);
		inside = fast.inside.n == 0 ? 0 : fast.inside.fast4 | fast.inside.fast6;
		assert_true((slow.burst.fast4 | slow.burst.fast6 | slow.burst.into) == 0);
		n_into += (unsigned int)__builtin_popcountll(usual);
		n_out += (unsigned int)__builtin_popcountll(inside);
		n_odd += fast.inside.n - (unsigned int)__builtin_popcountll(inside);
		bursts_are_alike(&fast.burst, &slow.burst);
		bursts_are_alike(&fast.inside, &slow.inside);
		assert_memory_equal(&fast.count.port[tunnel], &slow.count.port[tunnel],
				    sizeof(fast.count.port[tunnel]));
	}
	/* Each kind of packet came often. */
	assert_true(n_into > ROUNDS * 5 && n_out > ROUNDS * 5 && n_odd > ROUNDS);
}

/* up() without its choice of the code for this CPU. */
static int
up_with_isa(void **state)
{
	enum fwd_isa isa = fwd_isa;
	int rc = up(state);

	fwd_isa = isa;
	return rc;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(usual_packets_and_others_agree, up_with_isa,
						down),
	};

	return run_with_each_isa(tests, NULL, NULL);
}
