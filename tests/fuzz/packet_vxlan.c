/* SPDX-License-Identifier: BSD-3-Clause */
/* The VXLANs of fuzz_packet, see packet_vxlan.h. */
#include "packet_vxlan.h"

#include <stdlib.h>
#include <string.h>

#include "base/inet.h"
#include "must.h"
#include "packet_burst.h"
#include "packet_frames.h"
#include "packet_tunnels.h"

#define PORT 4789u
#define VNI  77u

static const uint8_t own4[4] = {192, 0, 2, 1};
static const uint8_t own6[16] = {0x20, 1, 0x0d, 0xb8, 0, 1, [15] = 1};
static const uint8_t vtep6[16] = {0x20, 1, 0x0d, 0xb8, 0, 0x77, [15] = 6};
static const uint8_t svi_mac[6] = {2, 0, 0, 0, 3, 1}, rmac[6] = {2, 0, 0, 0, 3, 2};

static void
svi_make(struct fib *fib, struct fib_vxlans *vxlans, uint16_t ifidx, uint8_t family)
{
	struct fib_iface *i = packet_iface(fib, ifidx, 1380);
	uint32_t at = fib_vxlan_hash(fib, 0, PORT, VNI);

	i->vxlan = (struct fib_vxlan){
		.family = family, .port = PORT, .vni = VNI, .zero_csum6 = true};
	memcpy(i->mac, svi_mac, sizeof(svi_mac));
	memcpy(i->vxlan.local.octet, family == 4 ? own4 : own6, family_octets(family));
	while (vxlans->entry[at & vxlans->mask] != 0)
		at++;
	vxlans->entry[at & vxlans->mask] = ifidx;
}

/* Write the headers for the neighbor. */
static void
hop_make(struct fib_vxlan_hop *hop, uint16_t ifidx)
{
	uint8_t *p = hop->t.head;

	*hop = (struct fib_vxlan_hop){.ifidx = ifidx,
				      .from_low = 49152,
				      .n_from = 16384,
				      .t = {.family = 6,
					    .gre = true,
					    .inner4 = true,
					    .inner6 = true,
					    .ttl = 64,
					    .bytes = FIB_VXLAN6_BYTES,
					    .proto_at = FIB_VXLAN6_BYTES - 2}};
	memcpy(hop->t.local.octet, own6, 16);
	memcpy(hop->t.remote.octet, vtep6, 16);
	p[0] = 0x60;
	p[6] = PROTO_UDP;
	memcpy(p + 8, own6, 16);
	memcpy(p + 24, vtep6, 16);
	put_be16(p + 42, PORT);
	p[48] = VXLAN_VNI_FLAG;
	put_be32(p + 52, VNI << 8);
	memcpy(p + 56, rmac, 6);
	memcpy(p + 62, svi_mac, 6);
}

void
vxlan_make(struct fib *fib, uint16_t ifidx, uint32_t adj, uint32_t group, uint32_t to_vtep)
{
	static const uint8_t net4[4] = {203, 0, 116};
	static const uint8_t net6[16] = {0x20, 1, 0x0d, 0xb8, 0, 0x7a};
	static struct fib_vxlan_hop hop;
	const unsigned int n = 8;
	struct fib_vxlans *vxlans = calloc(1, sizeof(*vxlans) + n * sizeof(uint16_t));

	MUST(vxlans != NULL);
	vxlans->mask = n - 1;
	svi_make(fib, vxlans, ifidx, 4);
	svi_make(fib, vxlans, ifidx + 1, 6);
	fib->vxlans = vxlans;
	hop_make(&hop, ifidx + 1);
	fib->adj[adj].ifidx = ifidx + 1;
	fib->adj[adj].family = 4;
	fib->vxlan_hop[adj] = &hop;
	fib->group[group] = group_word_single(PATH(PATH_ADJ, adj));
	packet_route(fib, 4, net4, 24, group);
	packet_route(fib, 6, net6, 48, group);
	packet_route(fib, 6, vtep6, 128, to_vtep);
}

uint8_t *
vxlan_begin(uint8_t *ip, bool six, bool inside4)
{
	uint8_t *udp = ip + (six ? 40 : 20);

	memset(ip, 0, (six ? 40 : 20) + VXLAN_HEAD_BYTES);
	if (six) {
		put_be32(ip, 6u << 28 | below(4) << 20 | below(1 << 20));
		ip[6] = PROTO_UDP;
		ip[7] = (uint8_t)(1 + below(255));
		memcpy(ip + 8, vtep6, 16);
		memcpy(ip + 24, own6, 16);
	} else {
		ip[0] = 0x45;
		ip[1] = (uint8_t)below(4);
		ip[8] = (uint8_t)(1 + below(255));
		ip[9] = PROTO_UDP;
		/* Only two VTEPs, so that many packets of a burst have equal headers. */
		put_be32(ip + 12, 0x0a000001 + below(2));
		memcpy(ip + 16, own4, 4);
	}
	put_be16(udp, (uint16_t)below(1 << 16));
	put_be16(udp + 2, PORT);
	udp[8] = VXLAN_VNI_FLAG;
	put_be32(udp + 12, (below(8) == 0 ? VNI + 1 : VNI) << 8);
	memcpy(udp + 16, svi_mac, 6);
	memcpy(udp + 22, rmac, 6);
	put_be16(udp + 28, inside4 ? 0x0800 : 0x86dd);
	return udp + VXLAN_HEAD_BYTES;
}

void
vxlan_end(uint8_t *ip, bool six, unsigned int inside_bytes)
{
	unsigned int len = VXLAN_HEAD_BYTES + inside_bytes;
	uint8_t *udp = ip + (six ? 40 : 20);

	put_be16(udp + 4, (uint16_t)len);
	if (six)
		put_be16(ip + 4, (uint16_t)len);
	else
		put_be16(ip + 2, (uint16_t)(20 + len));
	if (below(3) == 0)
		put_be16(udp + 6, (uint16_t)~inet_fold(inet_sum(
					  udp, len, udp_pseudo_sum(ip, six ? 6 : 4, len))));
}

bool
frame_is_vxlan(const uint8_t *frame, uint16_t n)
{
	const uint8_t *ip = packet_of(frame, n), *end = frame + n;
	unsigned int at = ip + 20 > end ? 0 : ip[0] >> 4 == 4 ? (ip[0] & 15u) * 4 : 40;

	return at >= 20 && ip + at + 4 <= end && ip[ip[0] >> 4 == 4 ? 9 : 6] == PROTO_UDP &&
	       get_be16(ip + at + 2) == PORT;
}

void
vxlan_sent_on(const uint8_t *ip, unsigned int bytes, const uint8_t *left)
{
	uint8_t ecn = (ip[0] >> 4 == 4 ? ip[1] : ip[1] >> 4) & ECN_MASK;
	uint32_t first = get_be32(left + 14);

	MUST(ip[ip[0] >> 4 == 4 ? 8 : 7] > 1);
	MUST(get_be16(left + 12) == 0x86dd);
	MUST(first >> 20 == (0x600u | ecn) && (first & 0xfffff) != 0);
	MUST(get_be16(left + 18) == bytes + VXLAN_HEAD_BYTES);
	MUST(left[20] == PROTO_UDP && left[21] == 64 && left[22] == own6[0]);
}
