/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rewrite_vectors: write the new headers of a burst that leaves by few interfaces. The MTU
 * is checked once per interface, and the MAC and tag of an interface become a vector once.
 * A packet then costs a few stores and no branch. The result is that of rewrite.c. The code
 * handles only bursts without rare cases; it leaves any other burst unchanged.
 *
 * rewrite_avx2.c and rewrite_avx512.c include this file, each for one kind of CPU. Before
 * the include they define octets64 and struct entries: vectors of the egress interfaces and
 * lengths of all entries. After it they define the functions that this file declares first.
 *                                                                               [fwd-n]
 *
 * Tried without gain: the MAC addresses before a tag as one store, together with octets of
 * that tag; a tag's store split where a cache line ends.
 */
#ifndef FWD_REWRITE_VECTORS_H
#define FWD_REWRITE_VECTORS_H

#include <assert.h>
#include <stddef.h>

#include "fib/label.h"
#include "fwd/fast.h"
#include "port/label_write.h"
#include "port/vlan_tags.h"

INLINE void entries_load(struct entries *e, const struct burst *b);
/* Return a bit for each entry that leaves by this interface. */
INLINE uint64_t entries_of(const struct entries *e, uint16_t ifidx);
/* Return a bit for each entry that is longer than `mtu` octets. */
INLINE uint64_t entries_longer(const struct entries *e, uint16_t mtu);
/* Return true if the route of an entry has an MTU. */
INLINE bool burst_any_mtu_class(const struct burst *b);

/* With fewer packets the checks cost more than the vectors save. */
#define PACKETS_MIN 16

/*
 * With more interfaces the scalar code is as fast, because each interface costs a pass over
 * all entries.
 */
#define EGRESS_MAX 16

/* The first octets of a frame, for each egress interface of the burst. */
struct egress {
	/* Headers by egress interface, without the destination MAC. */
	__m128i frame[EGRESS_MAX];
	/* For each entry of the burst: a byte offset in frame[]. */
	alignas(64) uint8_t at[BURST_MAX];
	unsigned int tag_bytes; /* octets of tags, the same for all interfaces */
	bool by_port;           /* no two egress interfaces share a port */
	unsigned int any_ifidx; /* OR of the numbers of the egress interfaces */
};
static_assert(EGRESS_MAX * sizeof(__m128i) <= 256, "an offset fits an octet");

/*
 * Return true if packets may leave by `out`, and if its frames have at most one tag, which
 * the forwarder writes and not the device. All interfaces of `w` must have tags of the same
 * length.
 */
INLINE bool
iface_usable(const struct fib_iface *out, const struct egress *w, bool first)
{
	return out != NULL && out->up && out->n_written == out->n_tags &&
	       out->n_tags <= 1 && (first || fib_tag_bytes(out) == w->tag_bytes);
}

/*
 * Fill `w` and b->out_port. `only4`: compare all packets with the MTU of IPv4. Each packet
 * grows by up to `more` octets. Returns false if a packet needs the code of rewrite.c.
 */
INLINE bool
egress_find(struct burst *b, struct egress *w, const struct entries *e, bool only4,
	    unsigned int more)
{
	/* Swap the octets of each half of a tag: struct fib_tag has them in host order. */
	const __m128i octets =
		_mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 12, 15, 14);
	uint64_t todo = burst_all(b), too_long = 0, ports = 0;
	octets64 at = octets_zero(), port = at;
	bool by_port = true;

	w->tag_bytes = w->any_ifidx = 0;
	for (unsigned int k = 0; todo != 0; k++) {
		uint16_t ifidx = (uint16_t)b->hop[__builtin_ctzll(todo)];
		const struct fib_iface *out = fib_iface(b->fwd->fib, ifidx);
		uint64_t mine = entries_of(e, ifidx) & todo;
		uint16_t mtu;

		if (k == EGRESS_MAX || !iface_usable(out, w, k == 0))
			return false;
		mtu = only4 ? out->mtu_bytes : out->mtu6_bytes;
		w->tag_bytes = fib_tag_bytes(out);
		w->any_ifidx |= ifidx;
		too_long |=
			mine & entries_longer(e, (uint16_t)(mtu > more ? mtu - more : 0));
		port = octets_put(port, mine, (uint8_t)out->port);
		at = octets_put(at, mine, (uint8_t)(k * sizeof(w->frame[0])));
		w->frame[k] = _mm_shuffle_epi8(_mm_loadu_si128((const void *)out), octets);
		/* Two ports with the same bit count as one port. */
		by_port &= (ports >> out->port % 64 & 1) == 0;
		ports |= 1ull << out->port % 64;
		todo &= ~mine;
	}
	w->by_port = by_port;
	octets_store(w->at, at);
	octets_store(b->out_port, port);
	return too_long == 0;
}

/*
 * Return the first octets of entry i's new frame: the MAC address of its next hop, which is
 * in the high octets of b->hop[i], then the rest of its egress interface's header.
 */
INLINE __m128i
egress_head(const struct burst *b, unsigned int i, const struct egress *w)
{
	const __m128i octets =
		_mm_setr_epi8(7, 6, 5, 4, 3, 2, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
	__m128i mac = _mm_cvtsi64_si128((int64_t)b->hop[i]);
	__m128i x = _mm_load_si128((const void *)((const uint8_t *)w->frame + w->at[i]));

	return _mm_blend_epi16(x, _mm_shuffle_epi8(mac, octets), 7);
}

/* Store the two MAC addresses, the first 12 octets of `x`. */
INLINE void
macs_store(uint8_t *eth, __m128i x)
{
	_mm_storel_epi64((void *)eth, x);
	_mm_storel_epi64((void *)(eth + 4), _mm_srli_si128(x, 4));
}

/*
 * Add `by` to the 16-bit fields in the 32 octets of the mbuf from data_off on, with one
 * load and one store. The reference count is one of these fields, but no other thread has
 * the mbuf.
 */
INLINE void
frame_shorten(struct rte_mbuf *m, __m256i by)
{
	void *at = (uint8_t *)m + offsetof(struct rte_mbuf, data_off);

	_mm256_storeu_si256(at, _mm256_add_epi16(_mm256_loadu_si256(at), by));
}

/* Let a frame begin `bytes` octets earlier. */
INLINE void
frame_extend(struct rte_mbuf *m, unsigned int bytes)
{
	uint64_t lengths = mbuf_lengths(m) + bytes * 0x100000001u;

	m->data_off = (uint16_t)(m->data_off - bytes);
	memcpy(&m->pkt_len, &lengths, sizeof(lengths));
}

/*
 * Return the vector for frame_shorten() that moves the start of a frame by `octets` and
 * shortens the frame by as much.
 */
INLINE __m256i
frame_shorten_vector(int octets)
{
	short by = (short)octets, less = (short)-octets;

	static_assert(offsetof(struct rte_mbuf, data_off) == 16 &&
			      offsetof(struct rte_mbuf, pkt_len) == 16 + 20 &&
			      offsetof(struct rte_mbuf, data_len) == 16 + 24,
		      "16-bit fields 0, 10 and 12");
	return _mm256_setr_epi16(by, 0, 0, 0, 0, 0, 0, 0, 0, 0, less, 0, less, 0, 0, 0);
}

/*
 * Write the headers of all entries. `families`: the burst has both families. `in`: the
 * packets came with a tag. `out`: they leave with a tag, which keeps the priority of the
 * old one. The compiler makes a separate loop for each combination.
 */
INLINE void
frames_write(struct burst *b, const struct egress *w, bool families, bool in, bool out)
{
	const __m128i priority =
		_mm_setr_epi32(0, 0, 0, (int)__builtin_bswap32(VLAN_PRIORITY));
	const __m256i by = frame_shorten_vector((in ? (int)VLAN_BYTES : 0) -
						(out ? (int)VLAN_BYTES : 0));
	unsigned int hop_at = L2_LEN + burst_hop_at(b->family[0]);

	for (unsigned int i = 0, n = b->n; i < n; i++) {
		uint8_t *l2 = burst_l2(b, i), *tag = l2 - VLAN_BYTES;
		__m128i x = egress_head(b, i, w);

		if (in && out)
			x = _mm_or_si128(
				x, _mm_and_si128(_mm_loadu_si128((void *)tag), priority));
		if (out) {
			_mm_storeu_si128((void *)tag, x);
		} else {
			macs_store(l2, x);
		}
		if (in != out)
			frame_shorten(b->m[i], by);
		if (families)
			hop_at = L2_LEN + burst_hop_at(b->family[i]);
		memcpy(l2 + hop_at, &b->hop_octets[i], 4);
	}
}

INLINE void
frames_write_families(struct burst *b, const struct egress *w, bool in, bool out)
{
	if (b->fast4 != 0 && b->fast6 != 0)
		frames_write(b, w, true, in, out);
	else
		frames_write(b, w, false, in, out);
}

/*
 * Write an entry that loses or gets labels: the MAC addresses at `eth`, where the frame
 * will begin, and the octets around the hop count.
 */
INLINE void
frame_write_moved(struct burst *b, unsigned int i, const struct egress *w, uint8_t *eth,
		  uint8_t family)
{
	uint8_t *ip = burst_l3(b, i);
	__m128i x = egress_head(b, i, w);

	macs_store(eth, x);
	memcpy(ip + burst_hop_at(family), &b->hop_octets[i], 4);
	b->l2[i] = eth;
}

/* Write all packets, which lose their only label. `only4`: all are IPv4. */
INLINE void
frames_write_popped(struct burst *b, const struct egress *w, bool only4)
{
	const __m256i by = frame_shorten_vector(LABEL_BYTES);

	for (unsigned int i = 0, n = b->n; i < n; i++) {
		uint8_t *eth = burst_l2(b, i), family = only4 ? 4 : b->family[i];

		frame_shorten(b->m[i], by);
		frame_write_moved(b, i, w, eth, family);
		put_be16(eth + 12, family == 4 ? 0x0800 : 0x86dd);
	}
}

/* Write all packets, which get labels. */
INLINE void
frames_write_pushed(struct burst *b, const struct egress *w, bool only4)
{
	const struct fib *fib = b->fwd->fib;
	const struct fib_encap *encap = fib->encap;
	uint8_t pipe_ttl = atomic_load_explicit(&fib->label_ttl, memory_order_relaxed);

	for (unsigned int i = 0, n = b->n; i < n; i++) {
		const struct fib_encap *e = &encap[path_index(b->path[i])];
		uint8_t *ip = burst_l3(b, i), family = only4 ? 4 : b->family[i];
		uint32_t hop = b->hop_octets[i];
		unsigned int bytes = e->n * LABEL_BYTES;
		uint8_t tc = pipe_ttl == 0 ? label_tc_of_ip(ip, family) : 0;
		uint8_t ttl = (uint8_t)(family == 4 ? hop : hop >> 24);

		frame_extend(b->m[i], bytes);
		frame_write_moved(b, i, w, ip - L2_LEN - bytes, family);
		put_be16(ip - bytes - 2, MPLS_TYPE);
		encap_write(e, ip - bytes, tc, true, pipe_ttl != 0 ? pipe_ttl : ttl);
	}
}

/*
 * frames_write_pushed() for IPv4 packets that all get one label. The EtherType, the label
 * and the first two octets of the IP header, which stay the same, are one store.
 */
INLINE void
frames_write_pushed_one(struct burst *b, const struct egress *w)
{
	const struct fib *fib = b->fwd->fib;
	const struct fib_encap *encap = fib->encap;
	const __m256i by = frame_shorten_vector(-(int)LABEL_BYTES);
	uint8_t pipe_ttl = atomic_load_explicit(&fib->label_ttl, memory_order_relaxed);

	for (unsigned int i = 0, n = b->n; i < n; i++) {
		uint8_t *eth = burst_l2(b, i) - LABEL_BYTES;
		__m128i x = egress_head(b, i, w);
		uint32_t hop = b->hop_octets[i],
			 label = encap[path_index(b->path[i])].entry[0];
		uint16_t head;
		uint64_t last;

		memcpy(&head, eth + L2_LEN + LABEL_BYTES, sizeof(head));
		label |= __builtin_bswap32(
			pipe_ttl == 0 ? label_entry(0, head >> 13, true, (uint8_t)hop)
				      : label_entry(0, 0, true, pipe_ttl));
		last = (uint64_t)head << 48 | (uint64_t)label << 16 |
		       __builtin_bswap16(MPLS_TYPE);
		macs_store(eth, x);
		memcpy(eth + 12, &last, sizeof(last));
		memcpy(eth + L2_LEN + LABEL_BYTES + burst_hop_at(4), &hop, sizeof(hop));
		frame_shorten(b->m[i], by);
		b->l2[i] = eth;
	}
}

/*
 * Replace the first label of all packets. The EtherType stays. The label keeps its TC and
 * S, and its TTL, which is above 1, is decremented.
 */
INLINE void
frames_write_swapped(struct burst *b, const struct egress *w)
{
	const struct fib_encap *encap = b->fwd->fib->encap;

	for (unsigned int i = 0, n = b->n; i < n; i++) {
		uint8_t *eth = burst_l2(b, i);
		__m128i x = egress_head(b, i, w);
		uint32_t label = encap[path_index(b->path[i])].entry[0];
		uint32_t rest = get_be32(eth + L2_LEN) & LABEL_REST;
		int last;

		label |= __builtin_bswap32(rest - 1);
		_mm_storel_epi64((void *)eth, x);
		last = _mm_extract_epi32(x, 2);
		memcpy(eth + 8, &last, sizeof(last));
		memcpy(eth + L2_LEN, &label, sizeof(label));
	}
}

/*
 * Write a burst in which all packets change their labels in the same manner. Returns false,
 * and has changed nothing, if the burst needs the code of label_fast.c.
 */
INLINE bool
rewrite_labels(struct burst *b, enum fwd_labels_do what)
{
	bool push = what == FWD_LABELS_PUSH;
	unsigned int families = 0, more = push ? b->push_bytes : 0;
	struct entries e;
	struct egress w;
	bool only4;

	if (b->n < PACKETS_MIN || burst_any_mtu_class(b))
		return false;
	for (unsigned int i = 0; i < b->n; i++)
		families |= b->family[i];
	only4 = families == 4;
	if (what == FWD_LABELS_SWAP)
		more = LABEL_BYTES;
	entries_load(&e, b);
	/*
	 * A packet with labels is compared with the MTU of IPv4 only. Interfaces with tags
	 * are not handled here, because a frame would need the priority of its old tag,
	 * too.
	 */
	if (!egress_find(b, &w, &e, only4 || what != FWD_LABELS_POP, more) ||
	    w.tag_bytes != 0 || w.any_ifidx >= PORT_MAX)
		return false;
	if (what == FWD_LABELS_SWAP) {
		frames_write_swapped(b, &w);
		return true;
	}
	for (uint64_t rest = b->padded & burst_all(b); rest != 0; rest &= rest - 1)
		frame_trim(b, (unsigned int)__builtin_ctzll(rest));
	if (push && only4 && b->push_alike && b->push_bytes == LABEL_BYTES)
		frames_write_pushed_one(b, &w);
	else if (push && only4)
		frames_write_pushed(b, &w, true);
	else if (push)
		frames_write_pushed(b, &w, false);
	else if (only4)
		frames_write_popped(b, &w, true);
	else
		frames_write_popped(b, &w, false);
	return true;
}

/*
 * Rewrite a burst as fwd_rewrite_fast() does. Returns false, and has changed nothing, if
 * the burst needs the code of rewrite.c.
 */
INLINE bool
rewrite_vectors(struct burst *b)
{
	bool in = b->tag_bytes != 0, out, named;
	struct entries e;
	struct egress w;

	if ((b->fast4 | b->fast6) != burst_all(b) || b->n < PACKETS_MIN ||
	    b->tag_bytes > VLAN_BYTES || burst_any_mtu_class(b))
		return false;
	entries_load(&e, b);
	if (!egress_find(b, &w, &e, b->fast6 == 0, 0))
		return false;
	out = w.tag_bytes != 0;
	if (out && (b->any_flags & VLAN_STRIPPED) != 0)
		return false; /* the priorities of stripped tags are in the mbufs */
	if (in && out)
		frames_write_families(b, &w, true, true);
	else if (out)
		frames_write_families(b, &w, false, true);
	else if (in)
		frames_write_families(b, &w, true, false);
	else
		frames_write_families(b, &w, false, false);
	/* A number from PORT_MAX on is that of a VLAN or macvlan. */
	named = w.any_ifidx >= PORT_MAX;
	b->tags_out = named;
	b->vlan_a_port = named && w.by_port;
	for (unsigned int i = 0; named && !w.by_port && i < b->n; i++)
		b->m[i]->port = (uint16_t)b->hop[i]; /* see tx_ifidx() */
	return true;
}

#endif
