/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * outer: the outer headers of tunnels, VXLAN and SRv6, and the tables of the last two. All
 * neighbors behind VXLAN are on one interface; each has a VTEP. Each headend has one
 * segment.
 */
#include <string.h>

#include <errno.h>
#include <stdlib.h>

#include "base/inet.h"
#include "fib/headend.h"
#include "fib/sid_entry.h"
#include "fib/tunnel.h"
#include "fib/vxlan.h"
#include "tags.h"

#define VXLAN_PORT   4789u
#define BEHIND       (1 + N_ADJ) /* adjacencies behind the VXLAN, and numbers of headends */
#define SID          1           /* number of the end point */
#define NUMBER_AT    2           /* place of a number in an IPv6 address */
#define LOCATOR_BITS 48

static const uint8_t svi_mac[6] = {2, 0, 0, 0, 9, 1}, rmac[6] = {2, 0, 0, 0, 9, 2};

static struct fib_vxlan_hop hop[N_ADJ];
static struct fib_seg6 seg6;
static struct fib_vxlans *received;

/* --- headers -------------------------------------------------------------------------- */

/* Write the IPv6 address with a number: the first address of a locator of 48 bits. */
static void
addr6(uint8_t to[16], uint32_t number)
{
	memset(to, 0, 16);
	to[0] = 0xfc;
	put_be32(to + NUMBER_AT, number);
}

/* Write UDP, VXLAN and Ethernet. */
static void
vxlan_head(uint8_t *udp, bool sent, unsigned int len)
{
	put_be16(udp, sent ? 0 : 50000);
	put_be16(udp + 2, VXLAN_PORT);
	put_be16(udp + 4, (uint16_t)(len + VXLAN_HEAD_BYTES));
	udp[8] = VXLAN_VNI_FLAG;
	put_be32(udp + 12, VNI_FIRST << 8);
	memcpy(udp + 16, sent ? rmac : svi_mac, 6);
	memcpy(udp + 22, sent ? svi_mac : rmac, 6);
	put_be16(udp + 28, 0x0800);
}

/* Write IPv6 and the list of segments. With two segments the last one is 0. */
static void
segment_head(uint8_t *head, enum tunnelled how, uint32_t from, uint32_t to,
	     unsigned int len)
{
	unsigned int n = how == SRV6_TWO ? 2 : how == SRV6 ? 1 : 0;

	head[0] = 0x60;
	put_be16(head + 4, (uint16_t)(len + tunnel_bytes(how) - 40));
	head[6] = n == 0 ? PROTO_IP4 : 43;
	head[7] = 64;
	addr6(head + 8, from);
	addr6(head + 24, to);
	if (n == 0)
		return;
	head[40] = PROTO_IP4;
	head[41] = (uint8_t)(2 * n);
	head[42] = SRH_TYPE;
	head[43] = head[44] = (uint8_t)(n - 1);
	addr6(head + 48, n == 2 ? 0 : to);
	if (n == 2)
		addr6(head + 64, to);
}

void
outer_write(uint8_t *head, enum tunnelled how, uint32_t from, uint32_t to, unsigned int len)
{
	memset(head, 0, tunnel_bytes(how));
	if (is_srv6(how)) {
		segment_head(head, how, from, to, len);
		return;
	}
	head[0] = 0x45;
	put_be16(head + 2, (uint16_t)(len + tunnel_bytes(how)));
	head[6] = how == VXLAN ? 0 : 0x40;
	head[8] = 64;
	head[9] = how == GRE ? PROTO_GRE : how == VXLAN ? PROTO_UDP : PROTO_IP4;
	put_be32(head + 12, from);
	put_be32(head + 16, to);
	if (how == GRE)
		put_be16(head + 22, 0x0800);
	if (how == VXLAN)
		vxlan_head(head + 20, from == HERE, len);
	put_be16(head + 10, (uint16_t)~inet_fold(inet_sum(head, 20, 0)));
}

/* Set the fields that differ for each packet to zero. Return false if one is wrong. */
static bool
own_take(enum tunnelled how, uint8_t *head)
{
	if (is_srv6(how)) {
		bool label = (get_be32(head) & 0xfffff) != 0;

		put_be32(head, get_be32(head) & ~0xfffffu);
		return label;
	}
	if (!ip4_checksum_ok(head, 20))
		return false;
	memset(head + 4, 0, 2);
	memset(head + 10, 0, 2);
	if (how != VXLAN)
		return true;
	if (get_be16(head + 20) < 49152)
		return false;
	memset(head + 20, 0, 2);
	return true;
}

bool
outer_right(enum tunnelled how, const uint8_t *ip, unsigned int port, unsigned int len)
{
	uint32_t adj = get_be32(ip + (is_srv6(how) ? 24 + NUMBER_AT : 16)) - THERE;
	uint8_t want[OUTER_MAX], got[OUTER_MAX];

	if (adj >= N_ADJ || world_port(adj) != port)
		return false;
	if (how == SRV6_TWO) { /* the end point is passed */
		outer_write(want, how, THERE, HERE, len);
		want[7]--;
		want[43]--;
		put_be32(want + 24 + NUMBER_AT, THERE + adj);
		put_be32(want + SECOND_AT, THERE + adj);
		return memcmp(ip, want, tunnel_bytes(how)) == 0;
	}
	outer_write(want, how, HERE, THERE + adj, len);
	if (!is_srv6(how))
		memset(want + 10, 0, 2);
	memcpy(got, ip, tunnel_bytes(how));
	return own_take(how, got) && memcmp(got, want, tunnel_bytes(how)) == 0;
}

/* --- tables --------------------------------------------------------------------------- */

/* Make the interface of a VNI, and let its packets find it. */
static void
vni_make(struct fib *fib, uint16_t svi, uint32_t vni)
{
	struct fib_iface *i = world_iface(svi, IN);
	uint32_t at = fib_vxlan_hash(fib, 0, VXLAN_PORT, vni);

	i->port = 0;
	memcpy(i->mac, svi_mac, sizeof(svi_mac));
	i->vxlan = (struct fib_vxlan){
		.family = 4, .port = VXLAN_PORT, .vni = vni, .local = ipaddr_from_v4(HERE)};
	fib->iface[svi] = i;
	while (received->entry[at & received->mask] != 0)
		at++;
	received->entry[at & received->mask] = svi;
}

static void
vxlan_make(struct fib *fib, uint16_t svi)
{
	unsigned int n = 2 * MANY;

	received = calloc(1, sizeof(*received) + n * sizeof(received->entry[0]));
	received->mask = n - 1;
	for (uint16_t k = 0; k < MANY; k++)
		vni_make(fib, svi + k, VNI_FIRST + k);
	for (unsigned int a = 0; a < N_ADJ; a++) {
		struct fib_tunnel *t = &hop[a].t;

		hop[a] = (struct fib_vxlan_hop){
			.ifidx = svi, .from_low = 49152, .n_from = 16384};
		*t = (struct fib_tunnel){.family = 4,
					 .gre = true,
					 .inner4 = true,
					 .inner6 = true,
					 .ignore_df = true,
					 .ttl = 64,
					 .bytes = (uint8_t)tunnel_bytes(VXLAN),
					 .proto_at = 48,
					 .local = ipaddr_from_v4(HERE),
					 .remote = ipaddr_from_v4(THERE + a)};
		outer_write(t->head, VXLAN, HERE, THERE + a, 0);
		memset(t->head + 2, 0, 2);
		memset(t->head + 8, 0, 1);
		memset(t->head + 10, 0, 2);
		memset(t->head + 24, 0, 2);
		memset(t->head + 48, 0, 2);
		fib->adj[BEHIND + a].ifidx = svi;
		fib->adj[BEHIND + a].family = 4;
		fib->vxlan_hop[BEHIND + a] = &hop[a];
	}
}

/* Write the headends, with one segment each. Returns false if that is impossible. */
static bool
headends_write(struct fib *fib, enum srv6_mode mode)
{
	uint32_t word[SRV6_WORDS_MAX];
	uint8_t addr[16];

	for (unsigned int a = 0; a < N_ADJ; a++) {
		addr6(addr, THERE + a);
		if (!fib_headend_write(&fib->headend[BEHIND + a], word,
				       srv6_headend_pack(mode, addr, 1, word)))
			return false;
	}
	return true;
}

static int
segments_make(struct fib *fib, uint32_t far, uint32_t own)
{
	uint8_t addr[16];
	int rc;

	addr6(seg6.source.octet, HERE);
	fib->seg6 = &seg6;
	fib->group[own] = group_word_single(PATH(PATH_LOCAL, SID));
	rc = poptrie_add(fib->copy[0].pt6, seg6.source.octet, 128, own);
	for (unsigned int a = 0; a < N_ADJ && rc == 0; a++) {
		addr6(addr, THERE + a);
		fib->encap[BEHIND + a].next = PATH(PATH_VRF, 0);
		rc = poptrie_add(fib->copy[0].pt6, addr, LOCATOR_BITS, far + a);
	}
	if (rc == 0 && !headends_write(fib, SRV6_ENCAP))
		rc = -EINVAL;
	return rc == 0 ? poptrie_commit(fib->copy[0].pt6) : rc;
}

int
outer_make(struct fib *fib, uint16_t svi, uint32_t far, uint32_t own)
{
	vxlan_make(fib, svi);
	return segments_make(fib, far, own);
}

void
outer_turn(struct fib *fib, const struct row *row)
{
	enum path_kind kind = is_srv6(row->into) ? PATH_ENCAP : PATH_ADJ;

	fib->vxlans = row->out_of == VXLAN || row->unused ? received : NULL;
	fib->sid[SID].action = row->out_of == SRV6_TWO ? SRV6_END : SRV6_END_DT46;
	(void)headends_write(fib, row->into == SRV6_RED ? SRV6_ENCAP_RED : SRV6_ENCAP);
	if (row->into != VXLAN && !is_srv6(row->into))
		return;
	for (unsigned int a = 0; a < N_ADJ; a++)
		fib->group[1 + a] = group_word_single(PATH(kind, BEHIND + a));
}
