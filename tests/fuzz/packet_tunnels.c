/* SPDX-License-Identifier: BSD-3-Clause */
/* The tunnels and SIDs of fuzz_packet, see packet_tunnels.h. */
#include "packet_tunnels.h"

#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "base/inet.h"
#include "fib/sid_number.h"
#include "fib/tunnel.h"
#include "must.h"
#include "packet_burst.h"
#include "packet_frames.h"
#include "packet_vxlan.h"

#define KEY         0x01020304u
#define GRE_HAS_KEY 0x20u
#define SID_BITS    48u
#define SRH         43u

static const uint8_t own4[4] = {192, 0, 2, 1};
static const uint8_t own6[16] = {0x20, 1, 0x0d, 0xb8, 0, 1, [15] = 1};

/* The last octet of the address of a far end is the index here. */
static const struct {
	uint8_t family;
	bool gre, key, inner4, inner6, limit;
} kinds[TUNNELS] = {
	{4, true, false, true, true, false},   /* gre */
	{4, true, true, true, true, false},    /* gre with a key */
	{4, false, false, true, false, false}, /* ipip */
	{4, false, false, true, true, false},  /* sit, mode any */
	{6, true, false, true, true, true},    /* ip6gre with an encapsulation limit */
	{6, true, true, true, true, false},    /* ip6gre with a key */
	{6, false, false, true, true, true},   /* ip6tnl, mode any */
};

/* SIDs are fc00:1:N::/48, where N is the index here. Index 0 is no SID. */
static const struct {
	uint8_t action, flavors;
} ends[SIDS] = {
	[1] = {SRV6_END, 0},
	[2] = {SRV6_END, SRV6_PSP | SRV6_USP | SRV6_USD},
	[3] = {SRV6_END_X, SRV6_PSP | SRV6_USD},
	[4] = {SRV6_END, SRV6_NEXT_CSID | SRV6_PSP | SRV6_USD},
	[5] = {SRV6_END_X, SRV6_NEXT_CSID},
	[6] = {SRV6_END_DT4, 0},                                 /* in the VRF */
	[7] = {SRV6_END_DT6, SRV6_NEXT_CSID | SRV6_TABLE_ALONE}, /* in the VRF */
	[8] = {SRV6_END_DT46, 0},
	[9] = {SRV6_END_T, SRV6_USP | SRV6_USD},
	[10] = {SRV6_END_B6_ENCAPS, 0},
};

static void
end_address(uint8_t *at, uint8_t family, unsigned int number)
{
	static const uint8_t far6[16] = {0x20, 1, 0x0d, 0xb8, 0, 0xe};

	if (family == 4) {
		put_be32(at, 0x0a000100 + number);
	} else {
		memcpy(at, far6, 16);
		at[15] = (uint8_t)number;
	}
}

static void
tunnel_enter(struct fib *fib, struct fib_tunnels *tunnels, uint16_t ifidx, uint8_t proto)
{
	const struct fib_tunnel *t = &fib->iface[ifidx]->tunnel;
	struct fib_tunnel_key key = {.local = t->local,
				     .remote = t->remote,
				     .key = t->key,
				     .family = t->family,
				     .proto = proto,
				     .has_key = t->has_key};
	uint32_t at = fib_tunnel_hash(fib, &key);

	if (!fib_tunnel_is(t, &key))
		return;
	while (tunnels->entry[at & tunnels->mask] != 0)
		at++;
	tunnels->entry[at & tunnels->mask] = ifidx;
}

struct fib_iface *
packet_iface(struct fib *fib, uint16_t ifidx, uint32_t mtu_bytes)
{
	struct fib_iface *i = calloc(1, sizeof(*i));

	MUST(i != NULL);
	*i = (struct fib_iface){.ifidx = ifidx,
				.mtu_bytes = mtu_bytes,
				.mtu6_bytes = mtu_bytes,
				.up = true,
				.forward4 = true,
				.fast4 = true,
				.forward6 = true,
				.fast6 = true,
				.ifindex = ifidx + 10u};
	fib->iface[ifidx] = i;
	return i;
}

void
packet_route(struct fib *fib, uint8_t family, const uint8_t *net, unsigned int len,
	     uint32_t group)
{
	struct poptrie *pt = family == 4 ? fib->copy[0].pt4 : fib->copy[0].pt6;

	MUST(poptrie_exact(pt, net, len) == POPTRIE_NONE);
	MUST(poptrie_add(pt, net, len, group) == 0);
}

/* Let packets go into a tunnel of GRE over IPv6 with an encapsulation limit. */
static void
template_make(struct fib *fib, struct fib_tunnel *t, uint32_t group)
{
	t->bytes = 52;
	t->proto_at = 50;
	t->head[0] = 0x60;
	t->head[6] = PROTO_IP6_OPTS;
	memcpy(t->head + 8, t->local.octet, 16);
	memcpy(t->head + 24, t->remote.octet, 16);
	memcpy(t->head + 40, (uint8_t[]){PROTO_GRE, 0, 4, 1, 4, 1, 1, 0}, 8);
	packet_route(fib, 6, t->remote.octet, 128, group);
}

void
tunnels_make(struct fib *fib, uint16_t ifidx, uint32_t group)
{
	static const uint8_t protos[] = {PROTO_GRE, PROTO_IP4, PROTO_IP6};
	const unsigned int n = 32;
	struct fib_tunnels *tunnels = calloc(1, sizeof(*tunnels) + n * sizeof(uint16_t));

	MUST(tunnels != NULL);
	tunnels->mask = n - 1;
	for (unsigned int k = 0; k < TUNNELS; k++, ifidx++) {
		struct fib_iface *i = packet_iface(fib, ifidx, 1380);

		i->tunnel = (struct fib_tunnel){.family = kinds[k].family,
						.gre = kinds[k].gre,
						.inner4 = kinds[k].inner4,
						.inner6 = kinds[k].inner6,
						.has_key = kinds[k].key,
						.has_limit = kinds[k].limit,
						.key = kinds[k].key ? KEY : 0};
		memcpy(i->tunnel.local.octet, kinds[k].family == 4 ? own4 : own6,
		       family_octets(kinds[k].family));
		end_address(i->tunnel.remote.octet, kinds[k].family, k);
		if (k == TUNNEL_SENDS)
			template_make(fib, &i->tunnel, group);
		for (unsigned int p = 0; p < sizeof(protos); p++)
			tunnel_enter(fib, tunnels, ifidx, protos[p]);
	}
	fib->tunnels = tunnels;
}

/* Write the SID of an index. */
static void
sid_address(uint8_t at[16], unsigned int number)
{
	memset(at, 0, 16);
	at[0] = 0xfc;
	at[3] = 1;
	put_be16(at + 4, (uint16_t)number);
}

/* Let the packets to a SID be counted. */
static void
number_give(struct fib *fib, unsigned int number)
{
	struct fib_sid_numbers *t = fib->sid_numbers;
	struct fib_sid_number *of = &t->of[number];
	uint32_t bucket;

	sid_address(of->addr.octet, number);
	of->table = RT_TABLE_MAIN;
	of->len = SID_BITS;
	bucket = sid_bucket(fib->seed, RT_TABLE_MAIN, &of->addr, SID_BITS);
	of->next = t->first[bucket];
	t->first[bucket] = number;
	t->lens[0] |= 1ull << (SID_BITS - 1);
}

void
sids_make(struct fib *fib, uint16_t vrf, fib_path policy, uint32_t group)
{
	static const uint8_t next6[16] = {0x20, 1, 0x0d, 0xb8, 0, 0x77, [15] = 5};

	for (unsigned int k = 1; k < SIDS; k++) {
		struct fib_sid *sid = &fib->sid[k];
		uint8_t net[16];

		*sid = (struct fib_sid){.action = ends[k].action,
					.flavors = ends[k].flavors,
					.block_bits = 32,
					.node_bits = 16,
					.vrf = ends[k].action == SRV6_END_DT4 ||
							       ends[k].action ==
								       SRV6_END_DT6
						       ? vrf
						       : 0};
		if (ends[k].action == SRV6_END_X) {
			sid->family = 6;
			memcpy(sid->hop.octet, next6, 16);
		}
		if (ends[k].action == SRV6_END_B6_ENCAPS)
			sid->policy = policy;
		fib->group[group + k] = group_word_single(PATH(PATH_LOCAL, k));
		sid_address(net, k);
		packet_route(fib, 6, net, SID_BITS, group + k);
		number_give(fib, k);
	}
}

/*
 * Write an outer header of a family without lengths and checksum. Return the octet behind
 * it.
 */
static uint8_t *
outer_begin(uint8_t *ip, bool six, uint8_t proto)
{
	memset(ip, 0, six ? 40 : 20);
	if (six) {
		put_be32(ip, 6u << 28 | below(4) << 20 | below(1 << 20));
		ip[6] = proto;
		ip[7] = (uint8_t)(1 + below(255));
		return ip + 40;
	}
	ip[0] = 0x45;
	ip[1] = (uint8_t)below(4);
	ip[8] = (uint8_t)(1 + below(255));
	ip[9] = proto;
	return ip + 20;
}

uint8_t *
tunnel_begin(uint8_t *ip, bool *six, bool inside4, bool *labels)
{
	unsigned int k = below(TUNNELS);
	uint8_t payload = inside4 ? PROTO_IP4 : PROTO_IP6, *at;
	uint8_t proto = kinds[k].gre ? PROTO_GRE : payload;
	/* The far end writes the limit, or not. Receivers accept both. */
	bool limit = kinds[k].family == 6 && below(2) == 0;

	*six = kinds[k].family == 6;
	at = outer_begin(ip, *six, limit ? PROTO_IP6_OPTS : proto);
	end_address(ip + (*six ? 8 : 12), kinds[k].family, k);
	memcpy(ip + (*six ? 24 : 16), *six ? own6 : own4, *six ? 16 : 4);
	if (limit) {
		memcpy(at, (uint8_t[]){proto, 0, 4, 1, 4, 1, 1, 0}, 8);
		at += 8;
	}
	if (!kinds[k].gre)
		return at;
	put_be16(at, kinds[k].key ? GRE_HAS_KEY << 8 : 0);
	*labels = below(3) == 0;
	put_be16(at + 2, *labels ? 0x8847 : inside4 ? 0x0800 : 0x86dd);
	at += 4;
	if (!kinds[k].key)
		return at;
	put_be32(at, below(8) == 0 ? KEY + 1 : KEY);
	return at + 4;
}

/* Write a segment: a SID of this router, or a host that has a route. */
static void
segment_write(uint8_t *at)
{
	static const uint8_t host6[16] = {0x20, 1, 0x0d, 0xb8, 0, 0x77, [15] = 9};

	if (below(2) == 0)
		memcpy(at, host6, 16);
	else
		sid_address(at, 1 + below(SIDS - 1));
}

uint8_t *
sid_begin(uint8_t *ip, bool inside4)
{
	uint8_t payload = inside4 ? PROTO_IP4 : PROTO_IP6, *at;
	unsigned int k = 1 + below(SIDS - 1), n = below(4), left = 0;

	if (below(16) == 0)
		payload = below(2) == 0 ? 58 : PROTO_UDP; /* neither is an inner packet */
	at = outer_begin(ip, true, n == 0 ? payload : SRH);
	/* Only two far ends, so that many packets of a burst have equal headers. */
	end_address(ip + 8, 6, below(2));
	sid_address(ip + 24, k);
	if ((ends[k].flavors & SRV6_NEXT_CSID) != 0 && below(2) == 0)
		put_be16(ip + 24 + 6, (uint16_t)(1 + below(SIDS - 1)));
	if (n == 0)
		return at;
	if (ends[k].action < SRV6_END_DX6 || below(4) == 0)
		left = below(n + 1);
	memset(at, 0, 8);
	at[0] = payload;
	at[1] = (uint8_t)(2 * n);
	at[2] = SRH_TYPE;
	at[3] = (uint8_t)left;
	at[4] = (uint8_t)(n - 1);
	for (unsigned int s = 0; s < n; s++)
		segment_write(at + SRH_FIXED_BYTES + 16 * s);
	return at + SRH_FIXED_BYTES + 16 * n;
}

void
outer_end(uint8_t *ip, bool six, unsigned int bytes)
{
	put_be16(ip + (six ? 4 : 2), (uint16_t)(six ? bytes - 40 : bytes));
}

bool
frame_has_inside(const uint8_t *frame, uint16_t n)
{
	const uint8_t *ip = packet_of(frame, n);
	uint8_t proto;

	if (frame_is_vxlan(frame, n))
		return true;
	if (ip + 20 > frame + n)
		return false;
	proto = ip[ip[0] >> 4 == 4 ? 9 : 6];
	/*
	 * Behind hop-by-hop options and a routing header there may be an inner packet, too.
	 */
	return tunnel_proto(proto) || (ip[0] >> 4 == 6 && (proto == 0 || proto == SRH));
}
