/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fast: the scalar code of the fast path's first two steps. It is the reference for the
 * vector code (fast_avx512.c, fast_lanes.h), and checks the last packets of a burst if they
 * are too few for a vector.
 *
 * The first step reads the buffers of a burst: where the frames begin, the flags of the
 * port, and whether the octets that select an interface (MAC addresses, tags) are equal in
 * all frames. The second step decides, packet by packet, whether a packet takes the fast
 * path.
 */
#include "fwd/fast.h"

#include "base/inet.h"
#include "base/mpls_entry.h"
#include "fwd/cpu.h"
#include "fwd/local_reason.h"

/* Keep this out of line, so that the calls of vector code are tail calls. */
static __attribute__((noinline)) uint64_t
look_one_by_one(struct burst *b, uint8_t tag_bytes)
{
	struct look look = {.all_flags = UINT64_MAX};
	uint64_t differ = 0;
	uint64_t tags = burst_tags(rte_pktmbuf_mtod(b->m[0], const uint8_t *));

	for (unsigned int i = 0; i < b->n; i++)
		differ |= burst_tags(look_at(&look, b, i, tag_bytes)) ^ tags;
	look_end(&look, b, tag_bytes);
	b->heads_differ = UINT64_MAX; /* unknown: each frame has to be compared */
	return differ;
}

uint64_t
fwd_look_tags(struct burst *b, uint8_t tag_bytes)
{
	if (fwd_uses_avx512())
		return fwd_look_avx512(b, tag_bytes);
	if (fwd_uses_avx2())
		return fwd_look_lanes8(b, tag_bytes);
	if (fwd_uses_lanes4())
		return fwd_look_lanes4(b, tag_bytes);
	return look_one_by_one(b, tag_bytes);
}

/* Return false for 0/8, 127/8, 169.254/16 and all from 224/3 on. */
static bool
addr4_passes(uint32_t addr)
{
	uint32_t top = addr >> 24;

	return top != 0 && top != 127 && top < 224 && addr >> 16 != 0xa9fe;
}

/*
 * Return true for global unicast (2000::/3) and unique local (fc00::/7), by the first
 * octet.
 */
static bool
addr6_passes(uint8_t first)
{
	return (first & 0xe0) == 0x20 || (first & 0xfe) == 0xfc;
}

/*
 * Return true if a packet of `len` octets fills `room`, or if the rest is the padding of a
 * minimum Ethernet frame.
 */
static bool
len_fits_room(unsigned int len, unsigned int room)
{
	return len == room || (room <= FAST_PADDED_MAX && len < room && len >= 20);
}

static inline bool
packet_fast4(struct burst *b, unsigned int i, unsigned int room, bool rx_cksum)
{
	const uint8_t *ip = b->l2[i] + L2_LEN;
	uint32_t src, dst;

	b->l3_len[i] = get_be16(ip + 2);
	if (room < 20 || ip[0] != 0x45 || !len_fits_room(b->l3_len[i], room) || ip[8] <= 1)
		return false;
	src = get_be32(ip + 12);
	dst = get_be32(ip + 16);
	if (!addr4_passes(src) || !addr4_passes(dst))
		return false;
	if (rx_cksum && burst_cksum(b, i) == RTE_MBUF_F_RX_IP_CKSUM_BAD)
		return false;
	if (!(rx_cksum && burst_cksum(b, i) == RTE_MBUF_F_RX_IP_CKSUM_GOOD) &&
	    !ip4_checksum_ok(ip, 20))
		return false;
	b->dst4[i] = dst;
	if (iface_checks_sources(b->in))
		b->src4[i] = src;
	b->hop_octets[i] = ip4_hop_spent(ip);
	return true;
}

static bool
packet_fast6(struct burst *b, unsigned int i, unsigned int room)
{
	const uint8_t *ip = b->l2[i] + L2_LEN;
	unsigned int len = 40u + get_be16(ip + 4);

	b->l3_len[i] = (uint16_t)len;
	/* Hop-by-hop options (0) are left to the slow path. */
	if (room < 40 || ip[0] >> 4 != 6 || !len_fits_room(len, room) || ip[6] == 0 ||
	    ip[7] <= 1 || !addr6_passes(ip[8]) || !addr6_passes(ip[24]))
		return false;
	b->hop_octets[i] = ip6_hop_spent(ip);
	return true;
}

/*
 * Set the hop count of the IP packet behind a label to the lower of the packet's and the
 * label's hop count, less one (see label_packet_ttl()). On entry b->hop_octets has the hop
 * count of the packet, less one.
 */
static inline void
hop_lower(struct burst *b, unsigned int i)
{
	uint32_t octets = b->hop_octets[i];
	uint8_t ttl = burst_l3(b, i)[-1] - 1; /* the last octet of the label */
	uint8_t at[4];

	memcpy(at, &octets, sizeof(at));
	if (b->family[i] == 6) {
		at[3] = ttl < at[3] ? ttl : at[3];
	} else if (ttl < at[0]) {
		/* RFC 1624: the checksum grows as the octet becomes less. */
		uint32_t sum = get_be16(at + 2) + ((uint32_t)(at[0] - ttl) << 8);

		at[0] = ttl;
		put_be16(at + 2, (uint16_t)(sum >= 0xffff ? sum - 0xffff : sum));
	}
	memcpy(&b->hop_octets[i], at, sizeof(at));
}

/* Check the IP packet of one frame. */
static bool
payload_fast(struct burst *b, unsigned int i, struct fwd_payload kind)
{
	const struct rte_mbuf *m = b->m[i];
	unsigned int room = m->pkt_len - kind.at;
	uint8_t version;

	if (m->data_len != m->pkt_len || m->pkt_len < kind.at + 20)
		return false;
	version = burst_l3(b, i)[0] >> 4;
	b->family[i] = version;
	/* The device did not verify this header. */
	if (version == 4 ? !kind.four || !packet_fast4(b, i, room, false)
			 : version != 6 || !kind.six || !packet_fast6(b, i, room))
		return false;
	b->padded |= (uint64_t)(b->l3_len[i] != room) << i;
	if (kind.uniform)
		hop_lower(b, i);
	return true;
}

struct fwd_families
fwd_fast_payloads(struct burst *b, uint64_t of, struct fwd_payload kind)
{
	struct fwd_families pass = {0, 0};
	uint64_t done = 0;

	if (fwd_uses_avx512() || fwd_uses_avx2())
		pass = fwd_fast_payloads_lanes8(b, of, kind, &done);
	else if (fwd_uses_lanes4())
		pass = fwd_fast_payloads_lanes4(b, of, kind, &done);
	for (of &= ~done; of != 0; of &= of - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(of);

		if (!payload_fast(b, i, kind))
			continue;
		pass.four |= (uint64_t)(b->family[i] == 4) << i;
		pass.six |= (uint64_t)(b->family[i] == 6) << i;
	}
	return pass;
}

uint8_t
fwd_fast_one(struct burst *b, unsigned int i)
{
	const uint8_t *macs = burst_macs(b, i);
	const struct rte_mbuf *m = b->m[i];
	unsigned int l2_len = L2_LEN + b->tag_bytes, room = m->pkt_len - l2_len;
	uint16_t type;

	if (m->data_len != m->pkt_len || m->pkt_len < l2_len + 20 ||
	    (memcmp(macs, b->in->mac, 6) != 0 && !b->macs_known) || (macs[6] & 1) != 0)
		return 0;
	type = get_be16(b->l2[i] + 12);
	if (type == 0x0800 && b->in->fast4 && packet_fast4(b, i, room, b->rx_cksum))
		b->family[i] = 4;
	else if (type == 0x86dd && b->in->fast6 && packet_fast6(b, i, room))
		b->family[i] = 6;
	else
		return 0;
	b->padded |= (uint64_t)(b->l3_len[i] != room) << i;
	return b->family[i];
}

void
fwd_fast_except_dhcp(struct burst *b)
{
	for (uint64_t rest = b->fast4; rest != 0; rest &= rest - 1)
		if (fwd_dhcp_answer_any(b, (unsigned int)__builtin_ctzll(rest)))
			b->fast4 &= ~(rest & -rest);
}

void
fwd_fast(struct burst *b)
{
	unsigned int i = 0;

	b->fast4 = b->fast6 = b->padded = 0;
	if (fwd_uses_avx512())
		i = fwd_fast_avx512(b); /* all entries, but for a short last group */
	else if (fwd_uses_avx2())
		i = fwd_fast_lanes8(b);
	else if (fwd_uses_lanes4())
		i = fwd_fast_lanes4(b);
	for (; i < b->n; i++) {
		uint8_t family = fwd_fast_one(b, i);

		b->fast4 |= (uint64_t)(family == 4) << i;
		b->fast6 |= (uint64_t)(family == 6) << i;
	}
	if (b->in->unnumbered4)
		fwd_fast_except_dhcp(b);
}
