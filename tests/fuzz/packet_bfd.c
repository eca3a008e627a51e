/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * BFD in the burst: the checks know the octets of the expected packets, and do not use the
 * code of the forwarder.
 */
#include "packet_bfd.h"

#include <string.h>

#include "base/inet.h"
#include "must.h"

#define SLOT4 5u
#define SLOT6 6u

static const uint8_t own4[4] = {192, 0, 2, 1}, peer4[4] = {192, 0, 2, 66};
static const uint8_t own6[16] = {0x20, 1, 0x0d, 0xb8, 0, 1, [15] = 1};
static const uint8_t peer6[16] = {0x20, 1, 0x0d, 0xb8, 0, 1, [15] = 66};

static struct bfd_beat beat[2]; /* IPv4, IPv6 */
static struct bfd_table *table;
static struct bfd_pace pace;
static unsigned int n_expected[2]; /* frames of the burst with an expected packet */

/* Make the expected packet of a session: Up, multiplier 3, 50 ms. */
static void
expected_make(uint8_t octets[BFD_OCTETS], uint32_t slot)
{
	memset(octets, 0, BFD_OCTETS);
	octets[0] = 1 << 5;
	octets[1] = 3 << 6;
	octets[2] = 3;
	octets[3] = BFD_OCTETS;
	put_be32(octets + 4, 0x22222222);
	put_be32(octets + 8, 0x11111000 | slot);
	put_be32(octets + 12, 50000);
	put_be32(octets + 16, 50000);
}

static void
session_make(struct bfd_beat *b, uint8_t family, uint32_t slot)
{
	bool is4 = family == 4;

	*b = (struct bfd_beat){
		.expects = true, .family = family, .ttl_least = 255, .port = BFD_PORT};
	memcpy(b->local.octet, is4 ? own4 : own6, is4 ? 4 : 16);
	memcpy(b->remote.octet, is4 ? peer4 : peer6, is4 ? 4 : 16);
	expected_make(b->expect, slot);
	atomic_store(&table->slot[slot].beat, b);
}

struct bfd_pace *
bfd_sessions(uint16_t ifidx)
{
	if (table == NULL) {
		table = bfd_table_create();
		MUST(table != NULL);
		pace.table = table;
		session_make(&beat[0], 4, SLOT4);
		session_make(&beat[1], 6, SLOT6);
	}
	for (unsigned int k = 0; k < 2; k++) {
		beat[k].ifidx = ifidx;
		atomic_store(&table->slot[k == 0 ? SLOT4 : SLOT6].n_heard, 0);
		n_expected[k] = 0;
	}
	return &pace;
}

unsigned int
bfd_packet_make(uint8_t *ip, bool is4)
{
	static const uint16_t port[] = {BFD_PORT, BFD_PORT, BFD_PORT_MULTI, BFD_PORT_ECHO,
					7784};
	unsigned int head = is4 ? 20 : 40;
	uint8_t *udp = ip + head;

	memset(ip, 0, head + 8);
	if (is4) {
		ip[0] = 0x45;
		put_be16(ip + 2, (uint16_t)(head + 8 + BFD_OCTETS));
		ip[8] = 255;
		ip[9] = 17;
		memcpy(ip + 12, peer4, 4);
		memcpy(ip + 16, own4, 4);
	} else {
		ip[0] = 0x60;
		put_be16(ip + 4, 8 + BFD_OCTETS);
		ip[6] = 17;
		ip[7] = 255;
		memcpy(ip + 8, peer6, 16);
		memcpy(ip + 24, own6, 16);
	}
	put_be16(udp, 49152);
	put_be16(udp + 2, below(2) ? BFD_PORT : port[below(5)]);
	put_be16(udp + 4, 8 + BFD_OCTETS);
	expected_make(udp + 8, is4 ? SLOT4 : SLOT6);
	if (below(3) == 0)
		udp[8 + below(BFD_OCTETS)] ^= (uint8_t)(1u << below(8));
	return head + 8 + BFD_OCTETS;
}

void
bfd_handed_over(struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	const uint8_t *ip = packet_of(frame, m->data_len);
	bool is4 = get_be16(ip - 2) == 0x0800;
	const uint8_t *udp = ip + (is4 ? (ip[0] & 15) * 4 : 40);
	uint16_t port;

	MUST(is4 || get_be16(ip - 2) == 0x86dd || get_be16(ip - 2) == 0x8847);
	if (get_be16(ip - 2) == 0x8847)
		return; /* a packet with labels: other code checks the packet behind them */
	MUST(udp + 8 <= frame + m->data_len);
	port = get_be16(udp + 2);
	MUST((is4 ? ip[9] : ip[6]) == 17);
	MUST(port == BFD_PORT || port == BFD_PORT_MULTI || port == BFD_PORT_ECHO);
	MUST(port != BFD_PORT || (is4 ? ip[8] : ip[7]) == 255);
	MUST(port != BFD_PORT_ECHO || (is4 ? ip[8] : ip[7]) >= 254);
}

void
bfd_seen(const struct given *g)
{
	for (unsigned int k = 0; k < 2; k++)
		n_expected[k] +=
			memmem(g->frame, g->first, beat[k].expect, BFD_OCTETS) != NULL;
}

void
bfd_counted(void)
{
	MUST(atomic_load(&table->slot[SLOT4].n_heard) <= n_expected[0]);
	MUST(atomic_load(&table->slot[SLOT6].n_heard) <= n_expected[1]);
}
