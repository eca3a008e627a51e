/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A router with a SID of SRv6, and packets to this SID, for tests of the stages of
 * forwarders. The tables are those of tunnel_bed.h and a VRF.
 */
#ifndef SID_BED_H
#define SID_BED_H

#include "tunnel_bed.h"

#include "fib/sid_entry.h"

#define RED       5 /* a VRF, whose hosts are on LAN */
#define RED_TABLE 1001
#define OUTER     40

static const uint8_t sid6[16] = {0xfc, 0, 0, 0, 0, 1, [15] = 9};
static const uint8_t next6[16] = {0xfc, 0, 0, 0, 0, 2, [15] = 9};
static const uint8_t last6[16] = {0xfc, 0, 0, 0, 0, 3, [15] = 9};

/* Make the entry of the route to sid6. */
static inline struct fib_sid *
sid(uint8_t action, uint8_t flavors, uint16_t vrf)
{
	struct fib_sid *e = &fib->sid[1];

	memset(e, 0, sizeof(*e));
	e->action = action;
	e->flavors = flavors;
	e->vrf = vrf;
	return e;
}

/* Add a route to a trie. group 0: delete it. */
static inline void
route6_of(struct poptrie *pt, const uint8_t addr[16], uint8_t bits, uint32_t group)
{
	assert_int_equal(group == 0 ? poptrie_del(pt, addr, bits)
				    : poptrie_add(pt, addr, bits, group),
			 0);
	assert_int_equal(poptrie_commit(pt), 0);
}

static inline int
sids_up(void **state)
{
	struct fib_vrf *red;
	uint8_t net[4];

	if (up(state) != 0)
		return -1;
	route6(sid6, 128, 20, PATH(PATH_LOCAL, 1));
	route6(next6, 48, 21, PATH(PATH_ADJ, 2));
	route6(last6, 64, 22, PATH(PATH_ADJ, 1));
	/* In main the hosts of the VRF are behind WAN. */
	fib->group[13] = group_word_single(PATH(PATH_ADJ, 2));
	fib->group[23] = group_word_single(PATH(PATH_ADJ, 1));
	red = fib_vrf_new(fib, RED_TABLE, "red");
	assert_non_null(red);
	put_be32(net, BACK4);
	assert_int_equal(poptrie_add(red->tries.pt4, net, 24, 23), 0);
	assert_int_equal(poptrie_commit(red->tries.pt4), 0);
	assert_int_equal(poptrie_add(red->tries.pt6, back6, 48, 23), 0);
	assert_int_equal(poptrie_commit(red->tries.pt6), 0);
	fib_vrf_publish(fib, RED, red);
	return 0;
}

/*
 * Write a packet to sid6 with a routing header of `n` segments (0: no header), of which
 * `left` are left. `inner`: the family of the inner packet (0: UDP instead). Store the
 * length of the whole packet in `len`.
 */
static unsigned int len;
static uint8_t hop_limit = 64, tclass;

static inline uint8_t *
build(unsigned int n, uint8_t left, uint8_t inner)
{
	uint8_t *ip = frame_begin(WAN, 6), *at = ip + OUTER;
	uint8_t proto = inner == 4 ? 4 : inner == 6 ? 41 : 17;

	put_be32(ip, 6u << 28 | (uint32_t)tclass << 20);
	ip[6] = n != 0 ? 43 : proto;
	ip[7] = hop_limit;
	memcpy(ip + 8, remote6, 16);
	memcpy(ip + 24, sid6, 16);
	if (n != 0) {
		memset(at, 0, 8);
		at[0] = proto;
		at[1] = (uint8_t)(2 * n);
		at[2] = 4;
		at[3] = left;
		at[4] = (uint8_t)(n - 1);
		at[5] = 0x55; /* flags, tag */
		at[7] = 0x66;
		memcpy(at + 8, last6, 16);
		if (n > 1)
			memcpy(at + 24, next6, 16);
		if (n > 2)
			memcpy(at + 40, sid6, 16);
		at += 8 + 16 * n;
	}
	if (inner != 0)
		at += inner_write(at, inner, 100, true);
	else
		at += 20;
	len = (unsigned int)(at - ip);
	put_be16(ip + 4, (uint16_t)(len - OUTER));
	return ip;
}

/*
 * Pass the packet through the stages, then each packet that an end point decapsulates from
 * it. Return the last verdict.
 */
static inline uint8_t
pass(void)
{
	walk(len);
	for (unsigned int deep = 0; b.verdict[0] == VERDICT_DECAPSULATED && deep < 4;
	     deep++) {
		struct fwd_decap decap = fwd_decap_of(&b, 0);

		fwd_tunnel_enter(&fwd, &b, &decap, 1);
		fwd_walk(&b, NULL);
	}
	return b.verdict[0];
}

static inline const uint8_t *
sent(void)
{
	return rte_pktmbuf_mtod_offset(&packet.m, const uint8_t *, 14);
}

/*
 * Assert that the router answers the packet by an ICMPv6 parameter problem with the pointer
 * `at`, and that the packet is unchanged.
 */
static inline void
refuses(enum reason cause, unsigned int at)
{
	uint8_t was[300];

	memcpy(was, packet.buffer + 128, sizeof(was));
	assert_int_equal(pass(), PUNT_unreach);
	assert_int_equal(b.cause[0], cause);
	assert_int_equal(packet.meta.mtu_bytes, at);
	assert_false(b.inside);
	assert_int_equal(packet.m.data_off, 128);
	assert_memory_equal(packet.buffer + 128, was, sizeof(was));
}

#endif
