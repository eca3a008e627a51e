/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Write the endless stream of UDP frames that a net_bench port receives. The destinations
 * come from a file. Headers are written into fresh mbufs, with the packet type that a NIC
 * would set. The payload is the old content of the mbuf.      [the thread that receives]
 */
#ifndef STREAM_H
#define STREAM_H

#include <string.h>

#include <rte_ether.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include "frame.h"

#define STREAM_SPORT 0x4000 /* plus the egress port: the UDP source port */
#define STREAM_L2    14
#define STREAM_AHEAD 256 /* frames that are prefetched */

struct stream {
	struct frame4 *f4;
	const struct frame6 *f6;
	uint32_t n4, n6;
	uint32_t len; /* frame length with FCS, for which headers and checksums are made */
	uint16_t len4, len6;
	struct rte_ether_addr mac; /* of the port: the destination of the frames */
	uint8_t head4[64] __rte_aligned(64), head6[64] __rte_aligned(64);
};

/* The position of a queue in the stream. */
struct stream_at {
	uint32_t at4, at6, turn;
};

/*
 * Read the files of bench_frames. An empty name: no frames of that family. Uses memory of
 * rte_malloc(), so that sequential reads are cheap. Returns 0 or -EINVAL.
 */
int stream_open(struct stream *s, const char *frames4, const char *frames6);

/* Make headers and checksums for frames of `len` octets with FCS, at least 64. */
void stream_len(struct stream *s, uint32_t len);

static inline void
stream_fill(struct rte_mbuf *m, const uint8_t *head, uint16_t len, uint32_t l3)
{
	rte_mov64(rte_pktmbuf_mtod(m, uint8_t *), head);
	m->data_len = len;
	m->pkt_len = len;
	m->packet_type = RTE_PTYPE_L2_ETHER | RTE_PTYPE_L4_UDP | l3;
}

static inline void
stream_write4(const struct stream *s, struct stream_at *at, uint32_t end,
	      struct rte_mbuf *m)
{
	const struct frame4 *f = &s->f4[at->at4];
	uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);
	uint16_t sport = rte_cpu_to_be_16(STREAM_SPORT + f->port);

	stream_fill(m, s->head4, s->len4, RTE_PTYPE_L3_IPV4);
	memcpy(p + 24, &f->checksum, 2);
	memcpy(p + 30, f->dst, 4);
	memcpy(p + 34, &sport, 2);
	rte_prefetch0(f + STREAM_AHEAD);
	if (++at->at4 >= end)
		at->at4 = 0;
}

static inline void
stream_write6(const struct stream *s, struct stream_at *at, struct rte_mbuf *m)
{
	const struct frame6 *f = &s->f6[at->at6];
	uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);
	uint16_t sport = rte_cpu_to_be_16(STREAM_SPORT + f->port);

	stream_fill(m, s->head6, s->len6, RTE_PTYPE_L3_IPV6);
	memcpy(p + 38, f->dst, 16);
	memcpy(p + 54, &sport, 2);
	rte_prefetch0(f + STREAM_AHEAD);
	if (++at->at6 == s->n6)
		at->at6 = 0;
}

/*
 * Write the next `n` frames.
 *
 * family   4, 6, or 0: both in turn, if the files have both
 * window   number of IPv4 frames to use, again and again; 0: all
 */
static inline void
stream_next(const struct stream *s, struct stream_at *at, uint32_t family, uint32_t window,
	    struct rte_mbuf **m, uint16_t n)
{
	uint32_t end = window != 0 && window < s->n4 ? window : s->n4;

	if (s->f6 == NULL)
		family = 4;
	else if (s->f4 == NULL)
		family = 6;
	for (uint16_t i = 0; i < n; i++)
		if (family == 4 || (family == 0 && (at->turn++ & 1) == 0))
			stream_write4(s, at, end, m[i]);
		else
			stream_write6(s, at, m[i]);
}

#endif
