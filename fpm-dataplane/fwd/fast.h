/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fast: select the packets for the fast path, in one pass over the headers of a burst. A
 * packet takes the fast path if it meets four conditions. It is valid unicast IP from one
 * station to our MAC. It has no IPv4 options and no IPv6 hop-by-hop options. Its addresses
 * may be forwarded, and it has hops left. The frame is as long as the packet, or is padded
 * to the minimum of Ethernet.
 *
 * The selection never drops a packet. All other packets take the slow path (parse.c), and
 * only the slow path finds the error of a packet. The slow path would forward each packet
 * that is selected; test_fwd_fast.c compares the two.
 *
 * Private to fwd/. The functions read the packet and write the burst. [fwd-n]
 */
#ifndef FWD_FAST_H
#define FWD_FAST_H

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "fwd/burst.h"

/* Ethernet pads to this number of octets behind the EtherType (IEEE 802.3, 3.2.8). */
#define FAST_PADDED_MAX 46

/*
 * Read the buffers of the burst: where the frames begin, and the flags of the port.
 * Fast-path packets keep `tag_bytes` bytes of tags until rewrite. Returns the bits of
 * burst_tags() that are not equal in all frames.
 */
uint64_t fwd_look_tags(struct burst *b, uint8_t tag_bytes);

/*
 * Fill b->fast4, b->fast6 and b->padded. For the packets of fast4 and fast6, set family,
 * l3_len and hop_octets, for IPv4 also dst4, and src4 if sources are checked
 * (b->in->urpf4). Requires b->in, a call of burst_look() before, and 39 readable octets
 * from the start of each frame, which every packet buffer has.
 */
void fwd_fast(struct burst *b);

/*
 * Check one packet, with scalar code on any CPU. Returns its family, 0 for the slow path.
 */
uint8_t fwd_fast_one(struct burst *b, unsigned int i);

/* Packets by family, a bit for each. */
struct fwd_families {
	uint64_t four, six;
};

/* IP packets that follow other headers than that of Ethernet, for example a label. */
struct fwd_payload {
	uint32_t at;    /* offset of the IP packets from the start of the frames */
	bool four, six; /* families that may be on the fast path */
	/*
	 * The packets follow one label, whose TTL is above 1. If the TTL of the label is
	 * lower than the hop count, the TTL less one becomes the hop count
	 * (label_packet_ttl()).
	 */
	bool uniform;
};

/*
 * Check the IP packets of bit mask `of` at burst_l3() as fwd_fast() does, but verify
 * checksums by software. Returns the packets that pass, and sets their family, l3_len,
 * hop_octets, dst4, src4 if sources are checked, and bits of b->padded. Reads 39 octets
 * from burst_l2() on, as fwd_fast() does.
 */
struct fwd_families fwd_fast_payloads(struct burst *b, uint64_t of,
				      struct fwd_payload kind);

/*
 * Leave each reply to a DHCP client to the slow path, which compares the client's MAC. The
 * fast path cannot compare it, because a burst may have packets of several interfaces. Call
 * this only for interfaces without an address.
 */
void fwd_fast_except_dhcp(struct burst *b);

/* Sums over the frames read so far. */
struct look {
	uint64_t bytes, any_flags, all_flags;
};

/* Read entry `i`. Returns the first octet of the frame. */
static inline uint8_t *
look_at(struct look *look, struct burst *b, unsigned int i, uint8_t tag_bytes)
{
	const struct rte_mbuf *m = b->m[i];
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);

	b->l2[i] = frame + tag_bytes;
	look->bytes += m->pkt_len;
	look->any_flags |= m->ol_flags;
	look->all_flags &= m->ol_flags;
	return frame;
}

/* Store the sums into the burst after the last entry. */
static inline void
look_end(const struct look *look, struct burst *b, uint8_t tag_bytes)
{
	b->tag_bytes = tag_bytes;
	b->bytes = look->bytes;
	b->any_flags = look->any_flags;
	b->all_flags = look->all_flags;
}

/* With fewer packets the vectors of fwd_look_tags() cost more than they save. */
#define LOOK_VECTORS_MIN 4

/* Read the buffers of a port without VLANs, or of frames whose tags have been removed. */
static inline void
burst_look(struct burst *b)
{
	struct look look = {.all_flags = UINT64_MAX};

	if (b->n >= LOOK_VECTORS_MIN) {
		(void)fwd_look_tags(b, 0);
		return;
	}
	for (unsigned int i = 0, n = b->n; i < n; i++)
		look_at(&look, b, i, 0);
	look_end(&look, b, 0);
	b->heads_differ = UINT64_MAX; /* unknown: each frame has to be compared */
}

/*
 * Bits of the first eight octets, little-endian: the destination MAC, and with it the group
 * bit of the source MAC.
 */
#define MAC_BITS  0xffffffffffffu
#define HEAD_BITS 0x1ffffffffffffu

/*
 * Return true if `n` frames from `from` on are for `mac`, or each for its own interface,
 * and none has a group address as source. Code that takes `n` packets at once leaves them
 * all to the slow path if one frame fails; this is rare.
 */
static inline __attribute__((always_inline)) bool
frames_are_ours(const struct burst *b, unsigned int from, unsigned int n, uint64_t mac)
{
	uint64_t head, any = 0, all = UINT64_MAX;

	if (((b->heads_differ | (b->head ^ mac)) & HEAD_BITS) == 0)
		return true;
	for (unsigned int i = from; i < from + n; i++) {
		memcpy(&head, burst_macs(b, i), sizeof(head));
		any |= head;
		all &= head;
	}
	if (b->macs_known)
		return (any & HEAD_BITS & ~MAC_BITS) == 0;
	return ((any ^ mac) & HEAD_BITS) == 0 && ((all ^ mac) & MAC_BITS) == 0;
}

/* Return true if the port verified the checksums of the whole burst and found no error. */
static inline bool
burst_cksums_good(const struct burst *b)
{
	return (b->all_flags & RTE_MBUF_F_RX_IP_CKSUM_GOOD) != 0 &&
	       (b->any_flags & RTE_MBUF_F_RX_IP_CKSUM_BAD) == 0;
}

/* Return pkt_len, data_len and vlan_tci of a buffer, from the lowest bit on. */
static inline uint64_t
mbuf_lengths(const struct rte_mbuf *m)
{
	uint64_t x;

	static_assert(offsetof(struct rte_mbuf, data_len) ==
			      offsetof(struct rte_mbuf, pkt_len) + 4,
		      "the lengths are adjacent");
	memcpy(&x, &m->pkt_len, sizeof(x));
	return x;
}

/*
 * fwd_look_tags() and fwd_fast() with vectors: for AVX-512, for AVX2 (8 lanes), and for
 * SSE4 or NEON (4 lanes). fwd_look_*() set b->heads_differ to exact bits. fwd_fast_*()
 * check groups of 16, 8 or 4 packets, and return the number of packets done.
 */
uint64_t fwd_look_avx512(struct burst *b, uint8_t tag_bytes);
uint64_t fwd_look_lanes8(struct burst *b, uint8_t tag_bytes);
uint64_t fwd_look_lanes4(struct burst *b, uint8_t tag_bytes);
unsigned int fwd_fast_avx512(struct burst *b);
unsigned int fwd_fast_lanes8(struct burst *b);
unsigned int fwd_fast_lanes4(struct burst *b);

/* fwd_fast_payloads() for complete groups; *done: the packets that were checked. */
struct fwd_families fwd_fast_payloads_lanes8(struct burst *b, uint64_t of,
					     struct fwd_payload kind, uint64_t *done);
struct fwd_families fwd_fast_payloads_lanes4(struct burst *b, uint64_t of,
					     struct fwd_payload kind, uint64_t *done);

/* Cut off the octets behind the IP packet at burst_l3(). */
static inline void
frame_trim(struct burst *b, unsigned int i)
{
	const uint8_t *end = burst_l3(b, i) + b->l3_len[i];
	struct rte_mbuf *m = b->m[i];

	m->data_len = (uint16_t)(end - rte_pktmbuf_mtod(m, uint8_t *));
	m->pkt_len = m->data_len;
}

/*
 * fwd_rewrite_fast() with vectors. Returns false, and has changed nothing, if the burst
 * needs the other code.
 */
bool fwd_rewrite_avx512(struct burst *b);
bool fwd_rewrite_avx2(struct burst *b);

enum fwd_labels_do {
	FWD_LABELS_POP,  /* each packet loses its only label and leaves as IP packet */
	FWD_LABELS_PUSH, /* each packet gets labels */
	FWD_LABELS_SWAP, /* one label replaces the first label of each packet */
};

/*
 * fwd_label_fast_rewrite() with vectors, for a burst in which the labels of all packets
 * change in the same manner. Returns false, and has changed nothing, if the burst needs the
 * other code.
 */
bool fwd_rewrite_labels_avx512(struct burst *b, enum fwd_labels_do what);
bool fwd_rewrite_labels_avx2(struct burst *b, enum fwd_labels_do what);

#endif
