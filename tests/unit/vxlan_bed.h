/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tables of tunnel_bed.h with an interface over VXLAN, and a neighbor behind it.
 */
#ifndef VXLAN_BED_H
#define VXLAN_BED_H

#include "fwd/vxlan.h"

#include "tunnel_bed.h"

#define SVI  (PORT_MAX + 3)
#define VNI  5001u
#define PORT 4789u
#define ADJ  3 /* the neighbor behind the VXLAN */

static const uint8_t svi_mac[6] = {2, 0, 0, 0, 3, 1}, rmac[6] = {2, 0, 0, 0, 3, 2};

static struct fib_vxlan_hop hop;

/*
 * Make the interface over VXLAN: publish the headers of the neighbor, over IPv4 or IPv6,
 * and the table of received packets, as neigh does.
 */
static inline struct fib_iface *
over(uint8_t family)
{
	struct fib_iface *i = iface_make(SVI, svi_mac);
	struct fib_vxlans *vxlans = calloc(1, sizeof(*vxlans) + 16 * sizeof(uint16_t));
	uint8_t *p = hop.t.head;

	i->vxlan = (struct fib_vxlan){.family = family, .port = PORT, .vni = VNI};
	i->mtu_bytes = i->mtu6_bytes = family == 4 ? 1450 : 1430;
	i->vxlan.zero_csum6 = true;
	hop = (struct fib_vxlan_hop){.ifidx = SVI,
				     .from_low = 49152,
				     .n_from = 16384,
				     .t = {.family = family,
					   .gre = true,
					   .inner4 = true,
					   .inner6 = true,
					   .ignore_df = true,
					   .ttl = 64,
					   .bytes = family == 4 ? 50 : 70,
					   .proto_at = family == 4 ? 48 : 68}};
	if (family == 4) {
		i->vxlan.local = hop.t.local = ipaddr_from_v4(LOCAL4);
		hop.t.remote = ipaddr_from_v4(REMOTE4);
		p[0] = 0x45;
		p[9] = 17;
		put_be32(p + 12, LOCAL4);
		put_be32(p + 16, REMOTE4);
		p += 20;
	} else {
		memcpy(i->vxlan.local.octet, local6, 16);
		memcpy(hop.t.local.octet, local6, 16);
		memcpy(hop.t.remote.octet, remote6, 16);
		p[0] = 0x60;
		p[6] = 17;
		memcpy(p + 8, local6, 16);
		memcpy(p + 24, remote6, 16);
		p += 40;
	}
	put_be16(p + 2, PORT);
	p[8] = 8;
	put_be32(p + 12, VNI << 8);
	memcpy(p + 16, rmac, 6);
	memcpy(p + 22, svi_mac, 6);
	assert_non_null(vxlans);
	vxlans->mask = 15;
	vxlans->one_end = SVI;
	vxlans->entry[fib_vxlan_hash(fib, 0, PORT, VNI) & 15] = SVI;
	free(fib->vxlans);
	fib->vxlans = vxlans;
	fib->vxlan_hop[ADJ] = &hop;
	return i;
}

static inline int
vxlan_up(void **state)
{
	up(state);
	fib->adj[ADJ].ifidx = SVI;
	fib->adj[ADJ].family = 4;
	fib->group[10] = fib->group[14] = group_word_single(PATH(PATH_ADJ, ADJ));
	return 0;
}

#endif
