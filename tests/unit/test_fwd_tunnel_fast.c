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
#include "fwd_sides.h"

#define ROUNDS 1500

static unsigned int n_into, n_out, n_odd;

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
	frame_give(i, in, in == LAN ? family : t->family, len);
}

/* --- both routers ------------------------------------------------------------------------- */

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
		fib->iface[tunnel]->ipv6_off = below(6) == 0;
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(usual_packets_and_others_agree, up_with_isa,
						down),
	};

	return run_with_each_isa(tests, NULL, NULL);
}
