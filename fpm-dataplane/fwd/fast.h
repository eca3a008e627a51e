/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plain: the dominant class, recognised in one sweep over the headers of a burst: unicast IP
 * from one station to our MAC, without options, nothing amiss, between addresses that may pass, with hops
 * left, the frame as long as the packet, or the shortest that Ethernet has. It is a promise, never a verdict: what is not
 * plain is walked by the rules (parse.c), which alone know what is wrong with a packet; what
 * is plain they would have let go on. test_fwd_fast.c holds one against the other.
 *
 * Private to fwd/. Everything here reads the packet and writes the burst.          [fwd-n]
 */
#ifndef FWD_FAST_H
#define FWD_FAST_H

#include "fwd/burst.h"

/* Octets behind the MAC addresses and type that Ethernet pads to (IEEE 802.3, 3.2.8). */
#define FAST_PADDED_MAX 46

/*
 * Look at the buffers: where the frames begin and their octets, what the port says of them.
 * Plain ones keep `tag_bytes` of tags for now. Returns what is not the same in all of where
 * burst_tags() are, a bit each.
 */
uint64_t fwd_look_tags(struct burst *b, uint8_t tag_bytes);

/* Look at those of a port without VLANs, or whose tags are off. */
static inline void
burst_look(struct burst *b)
{
	(void)fwd_look_tags(b, 0);
}

/*
 * Fill b->fast4, b->fast6 and b->padded, and of their packets family, l3_len, hop_octets, and (IPv4)
 * dst4. b->in must be there, burst_look() have looked, and 39 octets from each packet's first
 * on be memory, which any packet buffer is.
 */
void fwd_fast(struct burst *b);

/* One packet, whatever the CPU. Returns its family, 0 when it is not plain. */
uint8_t fwd_fast_one(struct burst *b, unsigned int i);

/* What the port says of the frames looked at so far. */
struct look {
	uint64_t bytes, any_flags, all_flags;
};

/* Look at entry `i`. Returns the frame's first octet. */
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

/* All entries have been looked at. */
static inline void
look_end(const struct look *look, struct burst *b, uint8_t tag_bytes)
{
	b->tag_bytes = tag_bytes;
	b->bytes = look->bytes;
	b->any_flags = look->any_flags;
	b->all_flags = look->all_flags;
}

/* fwd_look_tags() with AVX-512; b->heads_differ is exact then. */
uint64_t fwd_look_avx512(struct burst *b, uint8_t tag_bytes);

/* As many whole sixteens as there are, with AVX-512; returns the entries looked at. */
unsigned int fwd_fast_avx512(struct burst *b);

/*
 * fwd_rewrite_fast() with AVX-512, of a burst that it is made for; false: it is not, and nothing
 * has been done.
 */
bool fwd_rewrite_avx512(struct burst *b);

#endif
