/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loops for usual packets into and out of tunnels (fwd/tunnel_fast.c) give the result
 * of fwd/tunnel.c, octet by octet, for random bursts. The second router has no fast path.
 *
 * link: fpm-dataplane/fwd/ fpm-dataplane/fib/ fpm-dataplane/base/ fpm-dataplane/port/watch.c
 * link: fpm-dataplane/ruleset/
 * link: fpm-dataplane/port/rxq.c
 * link: poptrie/
 */
#include <rte_ring.h>

#include "base/policer.h"
#include "fib/hook_list.h" /* before `fib` of fwd_sides.h */
#include "fib/urpf.h"
#include "fwd/inner.h"

#include "fwd_sides.h"

#define ROUNDS 1500

static unsigned int n_into, n_out, n_odd;

/* Write the outer header that the far end of a tunnel writes. Return its length. */
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

/*
 * Write the same frame into both routers: a packet into a tunnel, or a packet that came in
 * it.
 */
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
	frame_give(i, in, in == LAN ? family : t->family, len);
}

/* --- both routers --------------------------------------------------------------------- */

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

/*
 * T1: outer packets without DF may be fragmented, so their identifications differ: RFC
 * 6864, 4.3.
 */
static void
identifications_differ(const struct burst *of)
{
	uint64_t seen = 0;

	for (unsigned int i = 0; i < of->n; i++) {
		unsigned int id = get_be16(packet_in(of->m[i]) + 4);

		if (of->verdict[i] != VERDICT_GO)
			continue;
		assert_true(id < BURST_MAX); /* side_walk() begins with 0 */
		assert_int_equal(seen >> id & 1, 0);
		seen |= 1ull << id;
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
		fib->iface[tunnel]->ipv6_off = below(6) == 0;
		fib->adj[2].hop = below(20) == 0 ? 0 : adj_hop_make(wan_peer, WAN);
		encap_set(&fib->encap[1], PATH(PATH_ADJ, 2), &(uint32_t){1000}, 1, 0);
		fib->group[11] = group_word_single(below(5) == 0 ? PATH(PATH_ENCAP, 1)
								 : PATH(PATH_ADJ, 2));
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
		if (in == LAN && tunnel == T4) {
			identifications_differ(&fast.burst);
			identifications_differ(&slow.burst);
		}
		bursts_are_alike(&fast.burst, &slow.burst);
		bursts_are_alike(&fast.inside, &slow.inside);
		assert_memory_equal(&fast.count.port[tunnel], &slow.count.port[tunnel],
				    sizeof(fast.count.port[tunnel]));
	}
	/* Each kind of packet came often. */
	assert_true(n_into > ROUNDS * 5 && n_out > ROUNDS * 5 && n_odd > ROUNDS);
}

/* --- packets of several tunnels in a burst -------------------------------------------- */

#define N_MORE    5
#define FIRST     (T6 + 1)
#define RED       1 /* a VRF */
#define N_PACKETS 30
#define GRE_BYTES 24
#define RING      64

static struct fwd_conf conf;
static unsigned int n_joined, n_dropped;
static struct fib_hook_state state_of;
static struct fib_hook hook;
static const struct fib_hooks hooks = {.n = 1, .hook = {&hook}};
static const struct fib_hooks *hooks_now;

/* Drop packets of odd hosts, and look up some of the others in VRF RED. */
static uint64_t
program(void *arg)
{
	const struct fpm_hook *got = arg;
	uint8_t host = got->packet[got->family == 4 ? 15 : 23];

	n_dropped += host % 2;
	return host % 2 != 0 ? FPM_DROP : host % 4 != 0 ? FPM_TABLE(1001) : FPM_PASS;
}

/* Give VRF RED a route by WAN to the IPv4 hosts of LAN, and no IPv6 route. */
static void
red_make(void)
{
	struct fib_vrf *red = fib_vrf_new(fib, 1001, "red");
	uint8_t net[4];

	assert_non_null(red);
	put_be32(net, BACK4);
	assert_int_equal(poptrie_add(red->tries.pt4, net, 24, 15), 0);
	assert_int_equal(poptrie_commit(red->tries.pt4), 0);
	fib_vrf_publish(fib, RED, red);
	atomic_store(&fib->vrfs_told, true);
}

static void
rings_make(void)
{
	static uint8_t room[8192] __attribute__((aligned(64)));
	struct rte_ring *ring = (struct rte_ring *)room;
	struct policer_conf none[N_PUNT_CLASS];

	assert_true((size_t)rte_ring_get_memsize(RING) <= sizeof(room));
	assert_int_equal(rte_ring_init(ring, "punt", RING, RING_F_SP_ENQ | RING_F_SC_DEQ),
			 0);
	for (unsigned int class = 0; class < N_PUNT_CLASS; class ++) {
		conf.rings.punt[class] = ring;
		none[class] = (struct policer_conf){.rate = POLICER_UNLIMITED,
						    .source_rate = POLICER_UNLIMITED};
	}
	policer_init(1000000000, none);
}

/*
 * Make tunnels of which some are unlike the others, and routes that some packets cannot
 * take.
 */
static void
tunnels_make(void)
{
	for (uint16_t k = 0; k < N_MORE; k++) {
		struct fib_iface *i = iface_make(FIRST + k, NULL);

		i->tunnel = (struct fib_tunnel){.family = 4, .gre = true, .bytes = 24};
		snprintf(i->name, sizeof(i->name), "t%u", k);
		i->vrf = below(2) == 0 ? RED : 0;
		i->up = below(20) != 0;
		i->ipv6_off = below(6) == 0;
		i->forward6 = below(6) != 0;
		i->urpf4 = below(12) == 0 ? FIB_URPF_LOOSE : FIB_URPF_OFF;
	}
	fib->iface[LAN]->mtu_bytes = fib->iface[LAN]->mtu6_bytes =
		below(3) == 0 ? 1400 : 1500;
	fib->iface[LAN]->up = below(10) != 0;
	fib->adj[2].hop = below(10) == 0 ? 0 : adj_hop_make(wan_peer, WAN);
	fib->group[13] = group_word_single(below(10) == 0 ? PATH(PATH_BLACKHOLE, 0)
							  : PATH(PATH_ADJ, 1));
	fib->group[15] =
		group_word_single(below(10) == 0 ? PATH(PATH_LOCAL, 0) : PATH(PATH_ADJ, 2));
}

/* Give both routers packet `i`, which a tunnel received. */
static void
inner_give(unsigned int i)
{
	uint8_t *ip = fast.packet[i].buffer + HEADROOM + 14, family = below(3) == 0 ? 6 : 4;
	unsigned int len;

	for (unsigned int k = 0; k < HEADROOM + 14 + GRE_BYTES; k++)
		fast.packet[i].buffer[k] = (uint8_t)random();
	len = packet_write(ip + GRE_BYTES, true, family);
	frame_give(i, WAN, 4, GRE_BYTES + len);
	fast.packet[i].meta = slow.packet[i].meta =
		(struct packet_meta){.outer_ifidx = WAN};
}

static void
inner_walk(struct side *s, const struct fwd_decap *decap, unsigned int n, bool on)
{
	fast_path_set(on);
	for (uint16_t k = 0; k < N_MORE; k++) {
		struct fib_iface *i = fib->iface[FIRST + k];

		i->fast4 = on && i->forward4;
		i->fast6 = on && i->forward6 && !i->ipv6_off;
	}
	memset((void *)fib->adj_used, 0, 4);
	memset(&s->fwd, 0, offsetof(struct fwd, tx));
	memset(s->fwd.tx, 0, sizeof(s->fwd.tx[0]) * 4);
	memset(&s->count, 0, sizeof(s->count));
	s->fwd.n_tx_used = 0;
	s->fwd.fib = fib;
	s->fwd.conf = &conf;
	s->fwd.hooks = hooks_now;
	s->fwd.tries = &fib->copy[0];
	s->fwd.count = &s->count;
	s->fwd.adj_used = fib->adj_used;
	s->fwd.tx_burst = TX_BURST_MAX;
	for (unsigned int i = 0; i < n; i++) {
		s->fwd.decap[i] = decap[i];
		s->fwd.decap[i].m = &s->packet[i].m;
	}
	s->fwd.n_decap = n;
	fwd_tunnels_walk(&s->fwd);
}

/*
 * Note where each packet is: a port, the ring of the punt thread (PORT_MAX), or dropped
 * (0).
 */
static void
places_find(struct side *s, uint16_t place[N_PACKETS])
{
	struct rte_mbuf *m;

	memset(place, 0, N_PACKETS * sizeof(place[0]));
	for (uint16_t port = LAN; port <= WAN; port++)
		for (unsigned int k = 0; k < s->fwd.tx[port].n; k++)
			for (unsigned int i = 0; i < N_PACKETS; i++)
				if (s->fwd.tx[port].m[k] == &s->packet[i].m)
					place[i] = port;
	while (rte_ring_dequeue(conf.rings.punt[0], (void **)&m) == 0)
		for (unsigned int i = 0; i < N_PACKETS; i++)
			if (m == &s->packet[i].m)
				place[i] = PORT_MAX;
}

static void
packet_is_alike(unsigned int i, uint16_t place)
{
	const struct rte_mbuf *m = &fast.packet[i].m, *k = &slow.packet[i].m;
	const struct packet_meta *a = &fast.packet[i].meta, *c = &slow.packet[i].meta;

	if (place == 0)
		return; /* the counters of reasons are compared */
	assert_int_equal(m->data_off, k->data_off);
	assert_int_equal(m->data_len, k->data_len);
	assert_memory_equal(rte_pktmbuf_mtod(m, uint8_t *), rte_pktmbuf_mtod(k, uint8_t *),
			    m->data_len);
	if (place != PORT_MAX)
		return;
	assert_int_equal(a->reason, c->reason);
	if (a->reason == PUNT_unreach || a->reason == PUNT_ttl_expired)
		assert_int_equal(a->cause, c->cause);
	assert_int_equal(a->in_ifidx, c->in_ifidx);
	assert_int_equal(a->vrf, c->vrf);
	assert_int_equal(a->inner_at, c->inner_at);
	assert_int_equal(a->outer_ifidx, c->outer_ifidx);
}

/*
 * Usual packets of several tunnels pass in one burst. The result is as if each tunnel had a
 * burst of its own.
 */
static void
packets_of_several_tunnels_agree(void **state)
{
	uint16_t places[2][N_PACKETS];
	struct fwd_decap decap[N_PACKETS];

	srandom(47);
	hook.run = program;
	hook.state = &state_of;
	red_make();
	rings_make();
	n_joined = n_odd = 0;
	for (unsigned int round = 0; round < ROUNDS; round++) {
		tunnels_make();
		snprintf(hook.dev, sizeof(hook.dev), "t%u", below(2 * N_MORE));
		hooks_now = below(2) == 0 ? &hooks : NULL;
		for (unsigned int i = 0; i < N_PACKETS; i++) {
			inner_give(i);
			decap[i] = (struct fwd_decap){
				.ifidx = (uint16_t)(FIRST + below(N_MORE)),
				.at = GRE_BYTES};
		}
		inner_walk(&fast, decap, N_PACKETS, true);
		places_find(&fast, places[0]);
		inner_walk(&slow, decap, N_PACKETS, false);
		places_find(&slow, places[1]);
		for (unsigned int i = 0; i < N_PACKETS; i++) {
			assert_int_equal(places[0][i], places[1][i]);
			packet_is_alike(i, places[0][i]);
			n_joined += places[0][i] == LAN || places[0][i] == WAN;
			n_odd += places[0][i] == 0 || places[0][i] == PORT_MAX;
		}
		assert_memory_equal(fast.count.reason, slow.count.reason,
				    sizeof(fast.count.reason));
		assert_memory_equal(fast.count.port, slow.count.port,
				    sizeof(fast.count.port));
		assert_memory_equal(fast.count.vrf, slow.count.vrf, sizeof(fast.count.vrf));
		assert_memory_equal(fast.count.forwarded, slow.count.forwarded,
				    sizeof(fast.count.forwarded));
	}
	assert_true(n_joined > ROUNDS * 8 && n_odd > ROUNDS * 3 && n_dropped > ROUNDS / 4);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(usual_packets_and_others_agree, up_with_isa,
						down),
		cmocka_unit_test_setup_teardown(packets_of_several_tunnels_agree,
						up_with_isa, down),
	};

	return run_with_each_isa(tests, NULL, NULL);
}
