/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fast path and the slow path give the same result, and vector code gives the result of
 * scalar code. The frames are good frames with random changes. The seed is printed.
 *
 * link: fpm-dataplane/fwd/ fpm-dataplane/fib/ fpm-dataplane/base/ fpm-dataplane/port/watch.c
 * link: fpm-dataplane/ruleset/
 * link: fpm-dataplane/port/rxq.c
 * link: poptrie/ tests/unit/oracle.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/inet.h"
#include "fwd/fast.h"
#include "fwd_isas.h"
#include "oracle.h"

#define ROUNDS 10000

static const uint8_t mac[6] = {2, 0, 0, 0, 1, 1};
static uint8_t frame[BURST_MAX][128];
static struct rte_mbuf mbuf[BURST_MAX];
static struct fib_iface in = {.ifidx = 1, .ifindex = 1, .up = true};
static struct fwd fwd;
static struct burst burst, scalar, rules;
/* random() takes a lock, and an emulator needs minutes for a hundred million calls. */
static struct rnd rnd;

static unsigned int
below(unsigned int n)
{
	return rnd_below(&rnd, n);
}

static void
checksum_write(uint8_t *ip)
{
	put_be16(ip + 10, 0);
	put_be16(ip + 10, (uint16_t)~inet_fold(inet_sum(ip, 20, 0)));
}

/* Make a frame without an error. */
static void
good_frame(unsigned int i, unsigned int family, unsigned int payload)
{
	uint8_t *p = frame[i], *ip = p + L2_LEN;
	unsigned int head = family == 4 ? 20 : 40;

	for (unsigned int k = 0; k < sizeof(frame[i]); k += 8)
		memcpy(p + k, &(uint64_t){rnd_next(&rnd)}, 8);
	memcpy(p, mac, 6);
	p[6] &= 0xfe;
	put_be16(p + 12, family == 4 ? 0x0800 : 0x86dd);
	if (family == 4) {
		ip[0] = 0x45;
		put_be16(ip + 2, (uint16_t)(head + payload));
		ip[8] = (uint8_t)(2 + below(254));
		put_be32(ip + 12, 0x0a000000 | below(1 << 24));
		put_be32(ip + 16, 0xc6000000 | below(1 << 24));
		checksum_write(ip);
	} else {
		ip[0] = 0x60;
		put_be16(ip + 4, (uint16_t)payload);
		ip[6] = 17;
		ip[7] = (uint8_t)(2 + below(254));
		ip[8] = 0x20;
		ip[24] = below(2) ? 0x2a : 0xfd;
	}
	mbuf[i] = (struct rte_mbuf){.buf_addr = p,
				    .data_len = (uint16_t)(L2_LEN + head + payload),
				    .pkt_len = L2_LEN + head + payload,
				    .nb_segs = 1};
}

/*
 * Make the packet of a DHCP server to the client with MAC `client`. The destination is the
 * offered address.
 */
static void
dhcp_answer(unsigned int i, const uint8_t *client)
{
	uint8_t *ip = frame[i] + L2_LEN;

	good_frame(i, 4, 60);
	put_be16(ip + 6, 0);
	ip[9] = 17;
	put_be16(ip + 20, 67);
	put_be16(ip + 22, 68);
	memcpy(ip + 20 + 8 + 28, client, 6);
	checksum_write(ip);
}

/* Change an address or a length to a value at the edge of a class, or change any octet. */
static void
change(unsigned int i)
{
	static const uint8_t octet[] = {0,    1,    2,    10,   127,  128,  169,  192,
					223,  224,  239,  240,  254,  255,  0x20, 0x3f,
					0x40, 0xfc, 0xfd, 0xfe, 0x80, 0x60, 0x45, 0x46};
	uint8_t *ip = frame[i] + L2_LEN;

	switch (below(7)) {
	case 0:
		mbuf[i].data_len = mbuf[i].pkt_len = (uint16_t)(14 + below(100));
		break;
	case 1:
		mbuf[i].pkt_len += below(3);
		break;
	/* Ethernet pads short frames; other frames are longer than their IP length. */
	case 2:
		mbuf[i].data_len = mbuf[i].pkt_len = mbuf[i].pkt_len + below(30);
		break;
	case 3:
		mbuf[i].ol_flags = (uint64_t[]){0, RTE_MBUF_F_RX_IP_CKSUM_GOOD,
						RTE_MBUF_F_RX_IP_CKSUM_BAD}[below(3)];
		break;
	default:
		frame[i][below(60)] = octet[below(sizeof(octet))];
	}
	/* Most changed headers get a correct checksum. */
	if (frame[i][12] == 8 && below(4) != 0)
		checksum_write(ip);
}

static void
burst_make(unsigned int n)
{
	unsigned int changed = below(4);
	/* A port that verifies checksums mostly reports all of them as good. */
	uint64_t said = below(2) ? RTE_MBUF_F_RX_IP_CKSUM_GOOD : 0;

	in.fast4 = in.forward4 = below(8) != 0;
	in.fast6 = in.forward6 = below(8) != 0;
	in.unnumbered4 = false;
	in.urpf4 = below(2) ? FIB_URPF_STRICT : FIB_URPF_OFF;
	memcpy(in.mac, mac, 6);
	burst = (struct burst){
		.fwd = &fwd, .in = &in, .n = (uint16_t)n, .ifidx = 1, .rx_cksum = below(2)};
	for (unsigned int i = 0; i < n; i++) {
		good_frame(i, below(2) ? 4 : 6, below(20));
		mbuf[i].ol_flags = said;
		for (unsigned int k = 0; changed > 0 && k < below(4); k++)
			change(i);
		burst.m[i] = &mbuf[i];
	}
	burst_look(&burst);
	scalar = rules = burst;
}

static bool
link_local(const uint8_t *ip, unsigned int family)
{
	if (family == 4)
		return (ip[12] == 169 && ip[13] == 254) || (ip[16] == 169 && ip[17] == 254);
	return (ip[8] == 0xfe && (ip[9] & 0xc0) == 0x80) ||
	       (ip[24] == 0xfe && (ip[25] & 0xc0) == 0x80);
}

static void
fast_and_slow_path_agree(void **state)
{
	unsigned long n_fast = 0, n_rest = 0, n_padded = 0;

	for (unsigned int round = 0; round < ROUNDS; round++) {
		bool forward[2];

		burst_make(1 + below(BURST_MAX));
		fwd_parse(&burst);
		/* On an interface that does not forward, all packets take the slow path. */
		forward[0] = in.forward4;
		forward[1] = in.forward6;
		in.fast4 = in.fast6 = in.forward4 = in.forward6 = false;
		fwd_parse(&rules);
		assert_int_equal(rules.fast4 | rules.fast6, 0);
		for (unsigned int i = 0; i < burst.n; i++) {
			uint64_t bit = 1ull << i;
			unsigned int family = burst.fast4 & bit   ? 4
					      : burst.fast6 & bit ? 6
								  : 0;
			const uint8_t *ip = frame[i] + L2_LEN;

			assert_int_equal(burst.verdict[i], rules.verdict[i]);
			assert_int_equal(burst.family[i], rules.family[i]);
			n_fast += family != 0;
			n_rest += family == 0;
			if (family == 0)
				continue;
			assert_int_equal(rules.verdict[i], VERDICT_GO);
			assert_int_equal(rules.family[i], family);
			assert_int_equal(burst.l3_len[i], rules.l3_len[i]);
			if (burst.padded & bit)
				assert_in_range(mbuf[i].pkt_len,
						L2_LEN + burst.l3_len[i] + 1,
						L2_LEN + FAST_PADDED_MAX);
			else
				assert_int_equal(burst.l3_len[i] + L2_LEN, mbuf[i].pkt_len);
			n_padded += burst.padded >> i & 1;
			assert_true(ip[family == 4 ? 8 : 7] > 1);
			assert_false(link_local(ip, family));
			assert_true(forward[family == 6]);
		}
	}
	assert_true(n_fast > ROUNDS && n_rest > ROUNDS && n_padded > ROUNDS / 10);
}

/*
 * Frames are checked in groups of sixteen. Return true if all frames of the group of frame
 * `i` are for our MAC and from a unicast address. Otherwise the whole group takes the slow
 * path.
 */
static bool
all_for_us(unsigned int i)
{
	for (unsigned int k = i & ~15u; k < (i | 15u) + 1; k++)
		if (memcmp(frame[k], mac, 6) != 0 || (frame[k][6] & 1) != 0)
			return false;
	return true;
}

static void
sixteen_at_once_are_sixteen_one_by_one(void **state)
{
	for (unsigned int round = 0; round < ROUNDS; round++) {
		burst_make(BURST_MAX);
		fwd_fast(&burst);
		for (unsigned int i = 0; i < burst.n; i++) {
			uint8_t family = fwd_fast_one(&scalar, i);

			if (!all_for_us(i) && ((burst.fast4 | burst.fast6) >> i & 1) == 0)
				continue;
			assert_int_equal(burst.fast4 >> i & 1, family == 4);
			assert_int_equal(burst.fast6 >> i & 1, family == 6);
			if (family != 0)
				assert_int_equal(burst.padded >> i & 1,
						 scalar.padded >> i & 1);
			if (family != 0) {
				assert_int_equal(burst.l3_len[i], scalar.l3_len[i]);
				assert_int_equal(burst.hop_octets[i], scalar.hop_octets[i]);
			}
			if (family != 4)
				continue;
			assert_int_equal(burst.dst4[i], get_be32(frame[i] + L2_LEN + 16));
			assert_int_equal(scalar.dst4[i], burst.dst4[i]);
			if (in.urpf4 == FIB_URPF_OFF)
				continue;
			assert_int_equal(burst.src4[i], get_be32(frame[i] + L2_LEN + 12));
			assert_int_equal(scalar.src4[i], burst.src4[i]);
		}
	}
}

static void
no_ipv6_packet_passes_where_ipv6_is_off(void **state)
{
	in = (struct fib_iface){.ifidx = 1,
				.forward4 = true,
				.fast4 = true,
				.forward6 = true,
				.ipv6_off = true};
	memcpy(in.mac, mac, 6);
	burst = (struct burst){.fwd = &fwd, .in = &in, .n = BURST_MAX};
	for (unsigned int i = 0; i < BURST_MAX; i++) {
		good_frame(i, i % 2 ? 4 : 6, i);
		burst.m[i] = &mbuf[i];
	}
	frame[0][L2_LEN + 24] = 0xff; /* multicast: the kernel would not take it either */
	burst_look(&burst);
	fwd_parse(&burst);
	for (unsigned int i = 0; i < BURST_MAX; i++)
		assert_int_equal(burst.verdict[i], i % 2 ? VERDICT_GO : DROP_ipv6_off);
	in.ipv6_off = false;
}

static void
good_frames_are_fast(void **state)
{
	in = (struct fib_iface){.ifidx = 1,
				.forward4 = true,
				.fast4 = true,
				.forward6 = true,
				.fast6 = true};
	memcpy(in.mac, mac, 6);
	burst = (struct burst){.fwd = &fwd, .in = &in, .n = BURST_MAX};
	for (unsigned int i = 0; i < BURST_MAX; i++) {
		good_frame(i, i % 2 ? 4 : 6, i);
		burst.m[i] = &mbuf[i];
	}
	burst_look(&burst);
	fwd_fast(&burst);
	assert_int_equal(burst.fast4, 0xaaaaaaaaaaaaaaaaull);
	assert_int_equal(burst.fast6, 0x5555555555555555ull);
}

/*
 * RFC 2131, 4.1: an offer is ours only on a port without an address, and only with our MAC.
 */
static void
a_dhcp_answer_is_ours_on_a_port_without_an_address(void **state)
{
	static const uint8_t other[6] = {2, 0, 0, 0, 9, 9};

	in = (struct fib_iface){.ifidx = 1,
				.forward4 = true,
				.fast4 = true,
				.forward6 = true,
				.fast6 = true,
				.unnumbered4 = true};
	memcpy(in.mac, mac, 6);
	burst = (struct burst){.fwd = &fwd, .in = &in, .n = BURST_MAX};
	for (unsigned int i = 0; i < BURST_MAX; i++) {
		if (i % 4 == 3)
			good_frame(i, 4, 60);
		else
			dhcp_answer(i, i % 4 < 2 ? mac : other);
		burst.m[i] = &mbuf[i];
	}
	burst_look(&burst);
	/* A later fragment has no ports. */
	for (unsigned int i = 1; i < BURST_MAX; i += 4) {
		put_be16(frame[i] + L2_LEN + 6, 100);
		checksum_write(frame[i] + L2_LEN);
	}

	fwd_parse(&burst);
	assert_int_equal(burst.fast4, 0xaaaaaaaaaaaaaaaaull);
	for (unsigned int i = 0; i < BURST_MAX; i++)
		assert_int_equal(burst.verdict[i],
				 i % 4 == 0 ? PUNT_local_control : VERDICT_GO);

	in.unnumbered4 = false;
	fwd_parse(&burst);
	assert_int_equal(burst.fast4, UINT64_MAX);
}

static void
a_packet_received_by_a_member_is_counted_for_its_vrf(void **state)
{
	uint64_t bytes = 0;

	fwd.count = calloc(1, sizeof(*fwd.count));
	fwd.tries = fwd.fib->copy;
	assert_non_null(fwd.count);
	in = (struct fib_iface){.ifidx = 1,
				.forward4 = true,
				.fast4 = true,
				.forward6 = true,
				.fast6 = true,
				.vrf = 3};
	memcpy(in.mac, mac, 6);
	burst = (struct burst){.fwd = &fwd, .in = &in, .n = BURST_MAX};
	for (unsigned int i = 0; i < BURST_MAX; i++) {
		good_frame(i, i % 3 ? 4 : 6, i);
		burst.m[i] = &mbuf[i];
		bytes += mbuf[i].pkt_len;
	}
	burst_look(&burst);
	for (unsigned int round = 0; round < 2; round++) {
		fwd_parse(&burst);
		fwd_lookup(&burst);
		assert_int_equal(burst.verdict[round], DROP_vrf_no_fib);
	}
	in.vrf = 0;
	fwd_parse(&burst);
	fwd_lookup(&burst);

	assert_int_equal(fwd.count->vrf[3].rx_packets, 2 * BURST_MAX);
	assert_int_equal(fwd.count->vrf[3].rx_bytes, 2 * bytes);
	assert_int_equal(fwd.count->vrf[0].rx_packets, 0);
	counter_vrf_drop(fwd.count, 3);
	counter_vrf_drop(fwd.count, 0);
	assert_int_equal(fwd.count->vrf[3].dropped, 1);
	assert_int_equal(fwd.count->vrf[0].dropped, 0);
	free(fwd.count);
	fwd.count = NULL;
}

/*
 * A member that is down counts its received packets for its VRF, because else the VRF would
 * have more drops than received packets.
 */
static void
so_is_a_packet_received_by_a_member_that_is_down(void **state)
{
	static const struct fib_iface down[] = {
		{.ifidx = 1, .ifindex = 10, .vrf = 3},           /* admin down */
		{.ifidx = 1, .up = true, .vrf = 3},              /* without a TAP */
		{.ifidx = 1, .ifindex = 10, .vrf = FIB_VRF_NONE} /* no VRF number */
	};

	fwd.count = calloc(1, sizeof(*fwd.count));
	assert_non_null(fwd.count);
	for (unsigned int i = 0; i < 3; i++) {
		struct fib_iface copy = down[i];
		const struct vrf_counters *c = &fwd.count->vrf[copy.vrf];
		uint64_t before = c->rx_packets;

		fwd.fib->iface[1] = &copy;
		burst = (struct burst){.fwd = &fwd, .n = 7, .ifidx = 1, .bytes = 700};
		assert_false(fwd_admit(&burst));
		assert_int_equal(c->rx_packets, before + 7);
		/* Packets that were divided by VLAN are counted already. */
		burst.vrf_counted = true;
		assert_false(fwd_admit(&burst));
		assert_int_equal(c->rx_packets, before + 7);
	}
	assert_int_equal(fwd.count->vrf[3].rx_bytes, 1400);
	fwd.fib->iface[1] = NULL;
	burst = (struct burst){.fwd = &fwd, .n = 7, .ifidx = 1};
	assert_false(fwd_admit(&burst)); /* no interface and no VRF */
	free(fwd.count);
	fwd.count = NULL;
}

static int
setup(void **state)
{
	rnd = rnd_seeded("test_fwd_fast");
	return fib_create(&fwd.fib, &(struct fib_conf){.n_nodes = 0});
}

static int
teardown(void **state)
{
	fib_destroy(fwd.fib);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_ipv6_packet_passes_where_ipv6_is_off),
		cmocka_unit_test(good_frames_are_fast),
		cmocka_unit_test(fast_and_slow_path_agree),
		cmocka_unit_test(sixteen_at_once_are_sixteen_one_by_one),
		cmocka_unit_test(a_dhcp_answer_is_ours_on_a_port_without_an_address),
		cmocka_unit_test(a_packet_received_by_a_member_is_counted_for_its_vrf),
		cmocka_unit_test(so_is_a_packet_received_by_a_member_that_is_down),
	};

	return run_with_each_isa(tests, setup, teardown);
}
