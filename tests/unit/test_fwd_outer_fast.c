/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loops for usual packets to VTEPs and behind headends of SRv6 (fwd/outer_fast.c), and
 * for packets out of a VXLAN or of an end point, give the result of fwd/vxlan.c,
 * fwd/headend.c and fwd/sid.c, octet by octet, for random bursts. The second router has no
 * fast path.
 *
 * link: fpm-dataplane/fwd/ fpm-dataplane/fib/ fpm-dataplane/base/ fpm-dataplane/port/watch.c
 * link: fpm-dataplane/ruleset/
 * link: fpm-dataplane/port/rxq.c
 * link: poptrie/
 */
#include "fib/sid_entry.h"
#include "fwd/vxlan.h"

#include "fwd_sides.h"
#include "vxlan_bed.h"

#define ROUNDS    1500
#define BELOW     9   /* index in fib->encap: a label of the route to the far end */
#define HEADEND   ADJ /* index: the headend and the neighbor have one entry of fwd.leg[] */
#define MTU_CLASS 1   /* of some routes */
#define MTU_ROUTE 700

static const uint8_t sid6[16] = {0xfc, 0, 0, 0, 0, 1, [15] = 9};
static const uint8_t tunsrc6[16] = {0x20, 1, 0xd, 0xb8, 0, 0xff, [15] = 1};
static const fib_path both[2] = {PATH(PATH_ADJ, 1), PATH(PATH_ADJ, 2)};
static const fib_path labels[2] = {PATH(PATH_ENCAP, BELOW), PATH(PATH_ADJ, 1)};
static struct fib_seg6 seg6;
static unsigned int n_into, n_out, n_odd, n_through;

/* --- packets that come from a VTEP, or to a SID --------------------------------------- */

static void
ip4_write(uint8_t *ip, unsigned int len)
{
	memset(ip, 0, 20);
	ip[0] = 0x45;
	ip[1] = (uint8_t)(below(6) == 0 ? below(4) : 0); /* ECN */
	put_be16(ip + 2, (uint16_t)len);
	ip[8] = 60;
	ip[9] = PROTO_UDP;
	put_be32(ip + 12, REMOTE4);
	put_be32(ip + 16, LOCAL4);
	checksum_set(ip);
}

static void
ip6_write(uint8_t *ip, uint8_t proto, const uint8_t *dst, unsigned int len)
{
	memset(ip, 0, 40);
	put_be32(ip, 6u << 28 | (uint32_t)(below(6) == 0 ? below(4) : 0) << 20);
	put_be16(ip + 4, (uint16_t)(len - 40));
	ip[6] = proto;
	ip[7] = 60;
	memcpy(ip + 8, remote6, 16);
	memcpy(ip + 24, dst, 16);
}

/* Return the number of octets of the outer headers of VXLAN. */
static unsigned int
vxlan_bytes(void)
{
	return hop.t.family == 4 ? FIB_VXLAN4_BYTES : FIB_VXLAN6_BYTES;
}

/* Write the headers of VXLAN before a packet of `len` octets at `ip` + vxlan_bytes(). */
static unsigned int
vxlan_outer(uint8_t *ip, uint8_t family, unsigned int len)
{
	unsigned int bytes = vxlan_bytes();
	uint8_t *udp = ip + bytes - VXLAN_HEAD_BYTES;

	memset(udp, 0, VXLAN_HEAD_BYTES);
	put_be16(udp, (uint16_t)(50000 + below(9)));
	put_be16(udp + 2, PORT);
	put_be16(udp + 4, (uint16_t)(len + VXLAN_HEAD_BYTES));
	udp[8] = VXLAN_VNI_FLAG;
	put_be32(udp + 12, VNI << 8);
	memcpy(udp + 16, svi_mac, 6);
	memcpy(udp + 22, rmac, 6);
	put_be16(udp + 28, family == 4 ? 0x0800 : 0x86dd);
	if (hop.t.family == 4)
		ip4_write(ip, len + bytes);
	else
		ip6_write(ip, PROTO_UDP, local6, len + bytes);
	if (below(3) == 0)
		put_be16(udp + 6, (uint16_t)~inet_fold(inet_sum(
					  udp, len + VXLAN_HEAD_BYTES,
					  udp_pseudo_sum(ip, hop.t.family,
							 len + VXLAN_HEAD_BYTES))));
	if (below(20) == 0)
		udp[below(VXLAN_HEAD_BYTES)] ^= (uint8_t)(1 + below(255));
	return bytes;
}

/* Write the headers of SRv6 before a packet of `len` octets, which is at `ip` + `bytes`. */
static unsigned int
sid_outer(uint8_t *ip, uint8_t family, unsigned int len, unsigned int bytes)
{
	uint8_t proto = family == 4 ? PROTO_IP4 : PROTO_IP6, *srh = ip + 40;

	ip6_write(ip, bytes == 40 ? proto : 43, sid6, len + bytes);
	if (bytes == 40)
		return bytes;
	memset(srh, 0, bytes - 40);
	srh[0] = proto;
	srh[1] = 2;
	srh[2] = SRH_TYPE;
	memcpy(srh + 8, sid6, 16);
	if (below(20) == 0)
		srh[below(8)] ^= (uint8_t)(1 + below(255));
	return bytes;
}

/* TO_BOTH: IPv4 to a VTEP, IPv6 behind a headend. */
enum kind { TO_VTEP, FROM_VTEP, TO_SEGMENTS, TO_SID, TO_BOTH };

/* Write the same frame into both routers. */
static void
frame_write(unsigned int i, enum kind kind)
{
	uint8_t *eth = fast.packet[i].buffer + HEADROOM, *ip = eth + 14;
	uint8_t family = below(3) == 0 ? 6 : 4, outer = kind == TO_SID ? 6 : hop.t.family;
	unsigned int len, bytes = below(2) == 0 ? 40 : 64;

	memset(fast.packet[i].buffer, 0, HEADROOM + 14 + 100);
	if (kind == FROM_VTEP) {
		len = packet_write(ip + vxlan_bytes(), true, family);
		len += vxlan_outer(ip, family, len);
	} else if (kind == TO_SID) {
		len = packet_write(ip + bytes, true, family);
		len += sid_outer(ip, family, len, bytes);
	} else {
		len = packet_write(ip, false, family);
		outer = family;
	}
	frame_give(i, kind == FROM_VTEP || kind == TO_SID ? WAN : LAN, outer, len);
}

/* --- tables --------------------------------------------------------------------------- */

/* Choose the settings of the vxlan device and of its neighbor. */
static void
vxlan_choose(void)
{
	struct fib_iface *svi = over(below(3) == 0 ? 6 : 4);

	svi->mtu_bytes = svi->mtu6_bytes = below(3) == 0 ? 1400 : 1450;
	hop.csum = below(4) == 0;
	hop.df6 = below(2) == 0;
	hop.t.df = below(4) == 0;
	hop.t.ignore_df = below(2) == 0;
	hop.t.ttl = below(3) == 0 ? 0 : 64;
	hop.t.tos = below(3) == 0 ? 0x20 : 0;
	hop.t.tos_inherit = below(3) == 0;
	hop.t.link = below(6) == 0 ? WAN + 10 : 0;
	if (below(4) == 0) {
		hop.from_low = 6000;
		hop.n_from = 3;
	}
	if (hop.t.family == 6 && below(3) == 0)
		put_be32(hop.t.head, 6u << 28 | 0x12345);
	if (below(30) == 0)
		hop.t.bytes = 0; /* no VTEP is known */
	if (below(30) == 0)
		svi->up = false;
}

static void
headend_choose(void)
{
	uint8_t segments[16 * 3] = {0}, n_words, n = (uint8_t)(1 + below(3));
	uint32_t word[SRV6_WORDS_MAX];

	for (unsigned int k = 0; k + 1 < n; k++) {
		segments[16 * k] = 0xfc;
		segments[16 * k + 15] = (uint8_t)k;
	}
	memcpy(segments + 16 * (n - 1u), remote6, 16);
	n_words = srv6_headend_pack(below(2) == 0 ? SRV6_ENCAP : SRV6_ENCAP_RED, segments,
				    n, word);
	if (below(3) == 0)
		n_words = srv6_headend_add_source(word, n_words, tunsrc6);
	fib->encap[HEADEND] = (struct fib_encap){.next = PATH(PATH_VRF, 0)};
	assert_true(fib_headend_write(&fib->headend[HEADEND], word, n_words));
	memset(&seg6, 0, sizeof(seg6));
	if (below(5) != 0)
		memcpy(seg6.source.octet, tunsrc6, 16);
	fib->seg6 = below(30) == 0 ? NULL : &seg6;
}

/* Choose the routes of the packets, and the routes of their outer packets. */
static void
routes_choose(enum kind kind)
{
	fib_path path =
		kind == TO_SEGMENTS ? PATH(PATH_ENCAP, HEADEND) : PATH(PATH_ADJ, ADJ);

	fib->group[10] = fib->group[14] =
		group_word_single(path_with_mtu(path, below(5) == 0 ? MTU_CLASS : 0));
	if (kind == TO_BOTH)
		fib->group[14] = group_word_single(PATH(PATH_ENCAP, HEADEND));
	/* Packets that come out of a VXLAN or an end point, and may go into another. */
	fib->group[13] = group_word_single(
		below(3) != 0 ? PATH(PATH_ADJ, 1)
			      : PATH(kind == FROM_VTEP ? PATH_ADJ : PATH_ENCAP,
				     kind == FROM_VTEP ? ADJ : HEADEND));
	fib->group[11] =
		below(3) == 0 ? group_word_block(below(4) == 0 ? labels : both, 1)
		: below(8) == 0
			? group_word_single(labels[0])
			: group_word_single(path_with_mtu(PATH(PATH_ADJ, 2),
							  below(6) == 0 ? MTU_CLASS : 0));
	fib->group[12] = group_word_single(below(30) == 0 ? PATH(PATH_NONE, 0)
							  : PATH(PATH_LOCAL, 0));
	fib->iface[WAN]->mtu_bytes = fib->iface[WAN]->mtu6_bytes =
		below(2) == 0 ? 1440 : 1500;
	fib->adj[2].hop = below(20) == 0 ? 0 : adj_hop_make(wan_peer, WAN);
	fib->tunnels_state = below(30) == 0 ? FIB_TUNNELS_IPSEC : FIB_TUNNELS_ALLOWED;
}

static void
packets_agree(enum kind kind)
{
	srandom(43 + kind);
	n_into = n_out = n_odd = n_through = 0;
	for (unsigned int round = 0; round < ROUNDS; round++) {
		uint16_t in = kind == FROM_VTEP || kind == TO_SID ? WAN : LAN;
		unsigned int n = 1 + below(BURST_MAX);
		uint64_t usual, inside;

		vxlan_choose();
		headend_choose();
		routes_choose(kind);
		for (unsigned int i = 0; i < n; i++)
			frame_write(i, kind);
		side_walk(&fast, n, in, true);
		side_walk(&slow, n, in, false);
		usual = fast.burst.into & (fast.burst.fast4 | fast.burst.fast6);
		inside = fast.inside.n == 0 ? 0 : fast.inside.fast4 | fast.inside.fast6;
		assert_true((slow.burst.fast4 | slow.burst.fast6 | slow.burst.into) == 0);
		n_into += (unsigned int)__builtin_popcountll(usual);
		n_out += (unsigned int)__builtin_popcountll(inside);
		n_through += (unsigned int)__builtin_popcountll(inside & fast.inside.into);
		n_odd += n - (unsigned int)__builtin_popcountll(usual);
		/*
		 * Compare inner packets first, because bursts_are_alike() clears the
		 * identifications, and outer packets have the same buffers.
		 */
		bursts_are_alike(&fast.inside, &slow.inside);
		bursts_are_alike(&fast.burst, &slow.burst);
		assert_memory_equal(&fast.count.port[SVI], &slow.count.port[SVI],
				    sizeof(fast.count.port[SVI]));
	}
}

static void
packets_to_a_vtep_agree(void **state)
{
	packets_agree(TO_VTEP);
	assert_true(n_into > ROUNDS * 8 && n_odd > ROUNDS);
}

static void
packets_from_a_vtep_agree(void **state)
{
	packets_agree(FROM_VTEP);
	assert_true(n_out > ROUNDS * 8 && n_through > ROUNDS * 2);
}

static void
packets_behind_a_headend_agree(void **state)
{
	packets_agree(TO_SEGMENTS);
	assert_true(n_into > ROUNDS * 8 && n_odd > ROUNDS);
}

static void
packets_out_of_an_end_point_agree(void **state)
{
	packets_agree(TO_SID);
	assert_true(n_out > ROUNDS * 8 && n_through > ROUNDS * 2);
}

static void
packets_to_a_vtep_and_behind_a_headend_agree(void **state)
{
	packets_agree(TO_BOTH);
	assert_true(n_into > ROUNDS * 8 && n_odd > ROUNDS);
}

static int
outer_up(void **state)
{
	if (up_with_isa(state) != 0)
		return -1;
	encap_set(&fib->encap[BELOW], PATH(PATH_ADJ, 2), &(uint32_t){1000}, 1, 0);
	fib->adj[ADJ].ifidx = SVI;
	fib->adj[ADJ].family = 4;
	fib->mtu_bytes[MTU_CLASS] = MTU_ROUTE;
	memcpy(fib->iface[WAN]->src6.octet, local6, 16); /* for headends without a source */
	memset(&fib->sid[1], 0, sizeof(fib->sid[1]));
	fib->sid[1].action = SRV6_END_DT46;
	route6(sid6, 128, 20, PATH(PATH_LOCAL, 1));
	return 0;
}

static int
outer_down(void **state)
{
	fib->seg6 = NULL; /* not allocated */
	return down(state);
}

#define outer_test(f) cmocka_unit_test_setup_teardown(f, outer_up, outer_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		outer_test(packets_to_a_vtep_agree),
		outer_test(packets_from_a_vtep_agree),
		outer_test(packets_behind_a_headend_agree),
		outer_test(packets_to_a_vtep_and_behind_a_headend_agree),
		outer_test(packets_out_of_an_end_point_agree),
	};

	return run_with_each_isa(tests, NULL, NULL);
}
