/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The frames of packet_burst.c's burst: the fuzzer's frame, changes of it, and valid
 * frames.
 */
#include "packet_frames.h"

#include <string.h>

#include "base/inet.h"
#include "packet_bfd.h"
#include "packet_labels.h"
#include "packet_tunnels.h"
#include "packet_vxlan.h"
#include "port/vlan_tags.h"

#define KINDS 4 /* kinds of valid frames; they differ in their tags */

static uint64_t chance;

void
chance_seed(uint64_t seed)
{
	chance = seed | 1; /* zero as the state would give zeros only */
}

unsigned int
below(unsigned int n)
{
	chance ^= chance << 13;
	chance ^= chance >> 7;
	chance ^= chance << 17;
	return (unsigned int)(chance >> 32) % n;
}

/*
 * Write up to four labels at `p`, each with a few hops or many. Return the octet behind
 * them.
 */
static uint8_t *
good_labels(uint8_t *p)
{
	static const uint32_t label[] = {0, 2, 7, LABEL_MAIN, LABEL_RED};
	unsigned int n = 1 + below(4);

	for (unsigned int k = 0; k < n; k++, p += 4) {
		uint32_t one = below(2) ? LABEL_PHP + below(LABEL_KINDS_END - LABEL_PHP)
					: label[below(5)];

		put_be32(p,
			 label_entry(one, (uint8_t)below(8), k + 1 == n,
				     (uint8_t)(below(8) == 0 ? below(3) : 2 + below(254))));
	}
	return p;
}

/*
 * Make a valid frame of our port or one of its VLANs: of kind `kind`, or of a random kind.
 */
static void
good_frame(struct given *g, const uint8_t *mac, unsigned int kind)
{
	static const uint16_t tag[KINDS][4] = {
		{0},
		{VLAN_S_TYPE, VLAN_IN_ID},
		{VLAN_S_TYPE, VLAN_IN_ID, VLAN_C_TYPE, VLAN_TWO_ID},
		{VLAN_C_TYPE, VLAN_RED_ID}};
	static const uint8_t src6[16] = {0x20, 1, 0x0d, 0xb8, 0, 9},
			     dst6[16] = {0x20, 1, 0x0d, 0xb8, 0, 0x77};
	const uint16_t *tags = tag[kind < KINDS ? kind : below(KINDS)];
	bool is4 = below(3) != 0, labels = below(4) == 0, bfd = below(6) == 0;
	enum { PLAIN, VXLAN, TUNNEL, SID } over = PLAIN;
	bool six = below(2) == 0, inside_labels = false;
	unsigned int payload = below(90), head = is4 ? 20 : 40;
	uint8_t *ip = g->frame + 12, *outer;

	for (unsigned int k = 0; k < 256; k++)
		g->frame[k] = (uint8_t)below(256);
	memcpy(g->frame, mac, 6);
	g->frame[6] &= 0xfe;
	for (unsigned int k = 0; k < 4 && tags[k] != 0; k += 2, ip += 4) {
		put_be16(ip, tags[k]);
		put_be16(ip + 2, tags[k + 1] | (uint16_t)(below(16) << 12));
	}
	outer = ip + 2;
	if (!labels && !bfd && below(2) == 0)
		over = VXLAN + below(3);
	ip = labels           ? good_labels(outer)
	     : over == VXLAN  ? vxlan_begin(outer, six, is4)
	     : over == TUNNEL ? tunnel_begin(outer, &six, is4, &inside_labels)
	     : over == SID    ? sid_begin(outer, is4)
			      : outer;
	if (inside_labels)
		ip = good_labels(ip);
	six = over == SID || (over == PLAIN ? !is4 : six);
	put_be16(outer - 2, labels ? 0x8847 : six ? 0x86dd : 0x0800);
	if (bfd) {
		payload = bfd_packet_make(ip, is4) - head;
	} else if (is4) {
		ip[0] = 0x45;
		put_be16(ip + 2, (uint16_t)(head + payload));
		ip[8] = (uint8_t)(2 + below(254));
		put_be32(ip + 12, 0x0a000000 | below(1 << 24));
		put_be32(ip + 16, below(4) == 0 ? 0xcb007000 + below(1280)
						: 0xc6336400 | below(256));
	} else {
		ip[0] = 0x60;
		put_be16(ip + 4, (uint16_t)payload);
		ip[6] = 17;
		ip[7] = (uint8_t)(2 + below(254));
		memcpy(ip + 8, src6, 15);
		memcpy(ip + 24, dst6, 15);
		ip[29] = (uint8_t)(ip[29] + (below(4) == 0 ? 1 + below(4) : 0));
	}
	g->n = (uint16_t)(ip - g->frame + head + payload);
	if (over != PLAIN && is4) {
		put_be16(ip + 10, 0);
		put_be16(ip + 10, (uint16_t)~inet_fold(inet_sum(ip, 20, 0)));
	}
	if (over == VXLAN)
		vxlan_end(outer, six, head + payload);
	else if (over != PLAIN)
		outer_end(outer, six, (unsigned int)(g->frame + g->n - outer));
	if (labels ? is4 : !six)
		packet_cksum(g->frame, g->n);
}

/*
 * Write the length of the frame into its IP header. Give IPv4 a destination that has a
 * route.
 */
static void
fit(struct given *g)
{
	uint8_t *ip;
	unsigned int room;

	if (g->n < 60)
		return;
	ip = g->frame + (packet_of(g->frame, g->n) - g->frame);
	room = g->n - (unsigned int)(ip - g->frame);
	if (get_be16(ip - 2) == 0x0800) {
		ip[0] = 0x45;
		put_be16(ip + 2, (uint16_t)room);
		put_be32(ip + 16, 0xc6336400 | below(256));
	} else if (get_be16(ip - 2) == 0x86dd && room >= 40) {
		ip[0] = 0x60;
		put_be16(ip + 4, (uint16_t)(room - 40));
	}
}

/*
 * Set a hop count near zero, or a checksum that overflows when the hop count falls by one.
 */
static void
edge(struct given *g)
{
	static const uint16_t sum[] = {0xfeff, 0xfefe, 0xff00, 0xfffe, 0x00ff, 1};
	uint8_t *ip;

	if (g->n < 60)
		return;
	ip = g->frame + (packet_of(g->frame, g->n) - g->frame);
	if (get_be16(ip - 2) != 0x0800) {
		ip[7] = (uint8_t)below(4);
	} else if (below(2)) {
		ip[8] = (uint8_t)below(4);
	} else {
		put_be16(ip + 4, 0);
		packet_cksum(g->frame, g->n);
		put_be16(ip + 4, inet_fold(get_be16(ip + 10) +
					   (uint16_t)~sum[below(RTE_DIM(sum))]));
	}
}

/* Make the answer of a DHCP server to a client with the port's MAC: RFC 2131, 2. */
static void
dhcp_answer(struct given *g, const uint8_t *mac)
{
	uint8_t *ip;

	if (g->n < 96)
		return;
	ip = g->frame + (packet_of(g->frame, g->n) - g->frame);
	ip[9] = 17;
	put_be16(ip + 6, 0);
	put_be16(ip + 20, 67);
	put_be16(ip + 22, 68);
	memcpy(ip + 20 + 8 + 28, mac, 6);
}

/*
 * Change a frame in one way: its length, its first segment, the checksum flag of the port,
 * some fields of its headers, or an octet, which often gets a value at the border of a
 * class.
 */
static void
change(struct given *g, const uint8_t *mac)
{
	static const uint8_t octet[] = {0,    1,    2,    8,    10,   127,  128,  129,
					169,  192,  198,  223,  224,  239,  240,  254,
					255,  0x20, 0x3f, 0x40, 0xfc, 0xfd, 0xfe, 0x80,
					0x81, 0x88, 0x60, 0x45, 0x46, 0xa8, 100,  40};
	unsigned int most = frame_has_inside(g->frame, g->n) ? 170 : 60;

	if (most > g->n)
		most = g->n;
	switch (below(10)) {
	case 0:
		g->n = (uint16_t)(14 + below(100));
		break;
	/* Ethernet pads short frames; other frames are longer than their IP length */
	case 1:
		g->n = (uint16_t)RTE_MIN(g->n + below(30), FRAME_MAX);
		break;
	case 2:
		fit(g);
		break;
	case 3:
		g->first = (uint16_t)(14 + below(100));
		break;
	case 4:
		g->ol_flags |=
			below(2) ? RTE_MBUF_F_RX_IP_CKSUM_GOOD : RTE_MBUF_F_RX_IP_CKSUM_BAD;
		break;
	case 5:
		g->frame[below(most)] ^= (uint8_t)(1u << below(8));
		break;
	case 6:
		dhcp_answer(g, mac);
		break;
	case 7:
		edge(g);
		break;
	default:
		g->frame[below(most)] = octet[below(sizeof(octet))];
	}
	/* Correct the checksum after most changes of a header. */
	if (below(4) != 0 && g->n >= 34 &&
	    get_be16(packet_of(g->frame, g->n) - 2) == 0x0800)
		packet_cksum(g->frame, g->n);
}

/* Strip the outer tag into the mbuf, as a NIC does. */
static void
strip(struct given *g)
{
	if (g->n < L2_LEN + VLAN_BYTES || get_be16(g->frame + VLAN_AT) != VLAN_C_TYPE)
		return;
	g->vlan_tci = get_be16(g->frame + VLAN_AT + 2);
	g->ol_flags |= RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
	g->n -= VLAN_BYTES;
	memmove(g->frame + VLAN_AT, g->frame + VLAN_AT + VLAN_BYTES, g->n - VLAN_AT);
}

unsigned int
frames_make(struct given given[BURST_MAX], const struct packet_port *port,
	    const uint8_t *mac, const uint8_t *frame, uint16_t n)
{
	/* How many of eight frames are valid, and how many are changed, on average. */
	static const uint8_t how[8][2] = {{0, 0}, {0, 1}, {1, 0}, {1, 1},
					  {7, 0}, {7, 1}, {4, 2}, {4, 7}};
	const uint8_t *h = how[below(8)];
	/*
	 * In half of the bursts all valid frames are of one kind, because a burst of random
	 * kinds seldom has sixteen frames of one kind. KINDS and above: random kinds.
	 */
	unsigned int kind = below(2 * KINDS);
	unsigned int entries = below(8) == 0 ? BURST_MAX : 1 + below(40);
	/* A port that verifies checksums mostly reports all of them as good. */
	uint64_t said = port->cksum && below(2) ? RTE_MBUF_F_RX_IP_CKSUM_GOOD : 0;

	for (unsigned int i = 0; i < entries; i++) {
		struct given *g = &given[i];

		if (below(8) < h[0]) {
			good_frame(g, mac, kind);
		} else {
			memcpy(g->frame, frame, n);
			g->n = n;
		}
		memset(g->frame + g->n, 0, FRAME_MAX - g->n < 160 ? FRAME_MAX - g->n : 160);
		g->first = FRAME_MAX;
		g->vlan_tci = 0;
		g->ol_flags = said;
		if (below(8) < h[1])
			for (unsigned int k = 1 + below(3); k > 0; k--)
				change(g, mac);
		if (port->strips)
			strip(g);
		if (g->first > g->n)
			g->first = g->n;
	}
	return entries;
}
