/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two routers over the tables of tunnel_bed.h that get the same bursts. The second router
 * has no fast path. So a test compares the fast path with the slow path.
 */
#ifndef FWD_SIDES_H
#define FWD_SIDES_H

#include "tunnel_bed.h"

#include "fwd_isas.h"

#define BUFFER   2048
#define HEADROOM 128

/* The packets of one router. */
struct side {
	struct fwd fwd;
	struct counters count;
	struct burst burst, inside;
	struct {
		struct rte_mbuf m;
		struct packet_meta meta;
		uint8_t buffer[BUFFER];
	} packet[BURST_MAX];
};

static struct side fast, slow;

static inline unsigned int
below(unsigned int n)
{
	return (unsigned int)random() % n;
}

static inline void
checksum_set(uint8_t *ip)
{
	put_be16(ip + 10, 0);
	put_be16(ip + 10, (uint16_t)~inet_fold(inet_sum(ip, 20, 0)));
}

/* --- packets -------------------------------------------------------------------------- */

/* Write a random packet of `family` and return its length. `back`: see inner_write(). */
static inline unsigned int
packet_write(uint8_t *ip, bool back, uint8_t family)
{
	unsigned int len = family == 4 ? 20 + below(60) : 48 + below(60);

	if (below(8) == 0)
		len = 1400 + below(80);
	inner_write(ip, family, len, back);
	if (below(10) == 0)
		ip[family == 4 ? 8 : 7] = (uint8_t)below(3);
	if (family == 4 && below(3) == 0)
		ip[6] = 0x40; /* DF */
	if (family == 6 && below(10) == 0)
		ip[6] = below(2) == 0 ? 0 : PROTO_IP6_OPTS;
	if (family == 4)
		checksum_set(ip);
	if (below(20) == 0)
		ip[below(len)] ^= (uint8_t)(1 + below(255));
	return len;
}

/*
 * Give both routers the frame in packet `i` of `fast`. The IP packet of `len` octets is
 * already there; this function writes the Ethernet header before it, at HEADROOM.
 */
static inline void
frame_give(unsigned int i, uint16_t in, uint8_t family, unsigned int len)
{
	uint8_t *eth = fast.packet[i].buffer + HEADROOM;

	memcpy(eth, in == LAN ? lan_mac : wan_mac, 6);
	memcpy(eth + 6, in == LAN ? lan_peer : wan_peer, 6);
	put_be16(eth + 12, family == 4 ? 0x0800 : 0x86dd);
	len += 14;
	if (len < 60) {
		memset(eth + len, 0, 60 - len);
		len = 60;
	}
	fast.packet[i].m = (struct rte_mbuf){.buf_addr = fast.packet[i].buffer,
					     .buf_len = BUFFER,
					     .data_off = HEADROOM,
					     .data_len = (uint16_t)len,
					     .pkt_len = len,
					     .nb_segs = 1,
					     .priv_size = PACKET_PRIV_BYTES};
	if (below(40) == 0)
		fast.packet[i].m.data_off -= 100; /* no room for headers */
	rte_mbuf_refcnt_set(&fast.packet[i].m, 2);
	memmove(rte_pktmbuf_mtod(&fast.packet[i].m, uint8_t *), eth, len);
	memcpy(&slow.packet[i], &fast.packet[i], sizeof(slow.packet[i]));
	slow.packet[i].m.buf_addr = slow.packet[i].buffer;
}

/* --- both routers --------------------------------------------------------------------- */

static inline void
fast_path_set(bool on)
{
	for (uint16_t i = 0; i < PORT_MAX + 8; i++) {
		struct fib_iface *iface = fib->iface[i];

		if (iface == NULL)
			continue;
		iface->fast4 = on;
		iface->fast6 = on && !iface->ipv6_off;
	}
}

/* Forget the counters and patterns of a router. */
static inline void
side_reset(struct side *s)
{
	memset(&s->fwd, 0, offsetof(struct fwd, tx));
	memset(&s->count, 0, sizeof(s->count));
	s->fwd.fib = fib;
	s->fwd.tries = &fib->copy[0];
	s->fwd.count = &s->count;
	s->fwd.adj_used = fib->adj_used;
}

/* Return the number of the packet with this buffer. */
static inline unsigned int
index_of(const struct side *s, const struct rte_mbuf *m)
{
	return (unsigned int)((size_t)((const uint8_t *)m - (const uint8_t *)s->packet) /
			      sizeof(s->packet[0]));
}

/* Make a burst of the first `n` packets of a router, received on `in`. */
static inline void
side_burst(struct side *s, unsigned int n, uint16_t in)
{
	memset(&s->fwd, 0, offsetof(struct fwd, tx));
	s->fwd.fib = fib;
	s->fwd.tries = &fib->copy[0];
	s->fwd.count = &s->count;
	s->fwd.adj_used = fib->adj_used;
	s->burst.fwd = &s->fwd;
	s->burst.n = (uint16_t)n;
	s->burst.ifidx = in;
	s->burst.inside = false;
	for (unsigned int i = 0; i < n; i++)
		s->burst.m[i] = &s->packet[i].m;
	burst_look(&s->burst);
}

/*
 * Pass the outer packets through the stages, then the packets that were decapsulated. These
 * must be of one tunnel or SID.
 */
static inline void
side_walk(struct side *s, unsigned int n, uint16_t in, bool on)
{
	struct fwd_decap decap[BURST_MAX];
	unsigned int n_decap = 0;

	fast_path_set(on);
	memset((void *)fib->adj_used, 0, 4);
	side_burst(s, n, in);
	fwd_walk(&s->burst, NULL);
	for (unsigned int i = 0; i < n; i++)
		if (s->burst.verdict[i] == VERDICT_DECAPSULATED)
			decap[n_decap++] = fwd_decap_of(&s->burst, i);
	s->inside.n = 0;
	if (n_decap == 0)
		return;
	assert_int_equal(fwd_tunnel_enter(&s->fwd, &s->inside, decap, n_decap), 0);
	fwd_walk(&s->inside, NULL);
}

/* Return the packet of a frame without tags, behind its labels. */
static inline uint8_t *
packet_in(struct rte_mbuf *m)
{
	uint8_t *at = rte_pktmbuf_mtod_offset(m, uint8_t *, 14);
	bool labels = get_be16(at - 2) == MPLS_TYPE;

	while (labels) {
		labels = !label_is_bottom(get_be32(at));
		at += LABEL_BYTES;
	}
	return at;
}

/*
 * Clear the IPv4 identification and checksum. They depend on the order in which the router
 * writes the packets of a burst, and that order does not matter.
 */
static inline void
id_clear(struct rte_mbuf *m)
{
	uint8_t *ip = packet_in(m);

	if (ip[0] >> 4 == 4) {
		put_be16(ip + 4, 0);
		put_be16(ip + 10, 0);
	}
}

static inline void
bursts_are_alike(const struct burst *a, const struct burst *c)
{
	assert_int_equal(a->n, c->n);
	for (unsigned int i = 0; i < a->n; i++) {
		struct rte_mbuf *m = a->m[i], *k = c->m[i];

		assert_int_equal(a->verdict[i], c->verdict[i]);
		assert_int_equal(m->data_off, k->data_off);
		assert_int_equal(m->data_len, k->data_len);
		assert_int_equal(m->pkt_len, k->pkt_len);
		if (a->verdict[i] == VERDICT_GO) {
			assert_true(a->hop[i] == c->hop[i]);
			id_clear(m);
			id_clear(k);
		} else if (a->verdict[i] == PUNT_unreach ||
			   a->verdict[i] == PUNT_ttl_expired) {
			assert_int_equal(a->cause[i], c->cause[i]);
		}
		assert_memory_equal(rte_pktmbuf_mtod(m, uint8_t *),
				    rte_pktmbuf_mtod(k, uint8_t *), m->data_len);
	}
}

/* Call up(), but keep the kind of forwarding code that was chosen before. */
static inline int
up_with_isa(void **state)
{
	enum fwd_isa isa = fwd_isa;
	int rc = up(state);

	fwd_isa = isa;
	return rc;
}

#endif
