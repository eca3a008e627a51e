/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Spend the hop and write the new header: TTL (RFC 1812 5.3.1), checksum (RFC 1624),
 * MTU of egress and route, padding cut off, MACs. After this stage a packet only waits to be sent.
 * A packet that leaves before is untouched: the punt thread sees what came.     [fwd-n]
 */
#include "base/inet.h"
#include "fwd/burst.h"
#include "port/vlan.h"

/* Both MAC addresses with two stores: `hop` has theirs, `out` ours. */
static inline void
write_macs(uint8_t *eth, uint64_t hop, const struct fib_iface *out)
{
	uint16_t head;
	uint32_t tail;
	uint64_t mac;

	memcpy(&head, out->mac, sizeof(head));
	memcpy(&tail, out->mac + 2, sizeof(tail));
	mac = __builtin_bswap64(hop & ~0xffffull) | (uint64_t)head << 48;
	memcpy(eth, &mac, 8);
	memcpy(eth + 8, &tail, 4);
}

/* First octet of the frame that leaves by `out`, tags written. */
static inline uint8_t *
frame_of(struct burst *b, unsigned int i, const struct fib_iface *out)
{
	if (out->n_tags == 0)
		return burst_l2(b, i);
	b->tags_out = true;
	return vlan_push(b->m[i], out);
}

static void
rewrite_one(struct burst *b, unsigned int i)
{
	uint8_t *ip = burst_l3(b, i);
	const struct fib_iface *out = fib_iface(b->fwd->fib, b->hop[i] & 0xffff);
	uint8_t *ttl = b->family[i] == 4 ? ip + 8 : ip + 7;
	unsigned int excess, mtu;

	if (*ttl <= 1) {
		burst_icmp(b, i, PUNT_ttl_expired, DROP_ttl);
		return;
	}
	if (out == NULL || !out->up) {
		burst_icmp(b, i, PUNT_unreach, DROP_egress_down);
		return;
	}
	mtu = fib_mtu(b->fwd->fib, b->path[i], out);
	if (b->l3_len[i] > mtu) {
		burst_leave(b, i, PUNT_too_big);
		packet_meta(b->m[i])->mtu_bytes = (uint16_t)mtu;
		return;
	}
	if (b->family[i] == 4)
		ip4_ttl_dec(ip);
	else
		(*ttl)--;
	excess = rte_pktmbuf_pkt_len(b->m[i]) - L2_LEN - b->l3_len[i];
	if (excess > 0)
		rte_pktmbuf_trim(b->m[i], (uint16_t)excess);
	write_macs(frame_of(b, i, out), b->hop[i], out);
}

/* A tag as it lies in a frame, type first, without a priority. */
static inline uint32_t
tag_word(const struct fib_tag *tag)
{
	uint32_t w;

	static_assert(sizeof(*tag) == sizeof(w) && offsetof(struct fib_tag, type) == 0,
		      "two halves, in the order of a frame");
	memcpy(&w, tag, sizeof(w));
	w = __builtin_bswap32(w); /* the octets of both halves, and the halves */
	return w << 16 | w >> 16;
}

/* Tags of a burst's plain packets. */
struct tagged {
	unsigned int bytes; /* that they still have */
	bool stripped;      /* of some the buffer has those that they came with */
	bool out;           /* some got others */
};

/* The priority of the tag before `l2`, or of one taken off, as it lies in a tag. */
static inline uint32_t
priority_word(const struct tagged *t, const struct rte_mbuf *m, const uint8_t *l2)
{
	unsigned int stripped = t->stripped ? vlan_stripped(m) : 0;
	uint32_t w = 0;

	if (t->bytes != 0)
		memcpy(&w, l2 - t->bytes + VLAN_AT, sizeof(w));
	else if (stripped != 0)
		w = __builtin_bswap32(vlan_outer_tci(m, stripped));
	return w & __builtin_bswap32(VLAN_PRIORITY);
}

/*
 * A frame that is this much shorter, or longer by less than its headroom; both of its lengths
 * are the same, and are one store.
 */
static inline void
shorten(struct rte_mbuf *m, int by)
{
	uint64_t lengths;

	static_assert(offsetof(struct rte_mbuf, data_len) ==
			      offsetof(struct rte_mbuf, pkt_len) + 4,
		      "lengths side by side");
	memcpy(&lengths, &m->pkt_len, sizeof(lengths));
	lengths -= (uint64_t)by * 0x100000001u;
	memcpy(&m->pkt_len, &lengths, sizeof(lengths));
	m->data_off += by;
}

/* A plain packet that came or leaves with tags: those of `out` in place of its own. */
static inline void
write_tagged(struct tagged *t, struct rte_mbuf *m, uint8_t *l2, uint64_t hop,
	     const struct fib_iface *out)
{
	unsigned int bytes = fib_tag_bytes(out);
	uint8_t *eth = l2 - bytes;

	if (bytes != 0) {
		uint32_t priority = priority_word(t, m, l2);
		uint32_t tag = tag_word(&out->tag[0]) | priority;

		memcpy(eth + VLAN_AT, &tag, sizeof(tag));
		if (out->n_tags == 2) {
			tag = tag_word(&out->tag[1]) | priority;
			memcpy(l2 + VLAN_AT - VLAN_BYTES, &tag, sizeof(tag));
		}
		m->port = out->ifidx; /* see tx_ifidx() */
		t->out = true;
	}
	write_macs(eth, hop, out);
	if (bytes != t->bytes)
		shorten(m, (int)t->bytes - (int)bytes);
}

/*
 * Plain packets that fit their way out; the others are plain no more. `only4`: all of the burst
 * are plain IPv4, `tagged`: they came with tags; the compiler makes a loop of its own of each.
 */
static inline __attribute__((always_inline)) void
rewrite_plain(struct burst *b, bool only4, bool tagged)
{
	const struct fib *fib = b->fwd->fib;
	uint64_t plain = b->plain4 | b->plain6, odd = 0;
	struct tagged t = {.bytes = tagged ? b->tag_bytes : 0,
			   .stripped = !tagged && (b->any_flags & VLAN_STRIPPED) != 0};

	for (unsigned int i = 0, n = b->n; i < n; i++) {
		const struct fib_iface *out;
		uint8_t *l2 = burst_l2(b, i), *ip = l2 + L2_LEN;

		if (!only4 && (plain >> i & 1) == 0)
			continue;
		out = fib_iface(fib, b->hop[i] & 0xffff);
		if (out == NULL || !out->up ||
		    b->l3_len[i] > fib_mtu(fib, b->path[i], out)) {
			odd |= 1ull << i;
			continue;
		}
		b->way[i] = (uint8_t)out->port;
		if (tagged || out->n_tags != 0)
			write_tagged(&t, b->m[i], l2, b->hop[i], out);
		else
			write_macs(l2, b->hop[i], out);
		memcpy(ip + burst_hop_at(only4 ? 4 : b->family[i]), &b->hop_octets[i], 4);
	}
	b->tags_out |= t.out;
	burst_unplain(b, odd);
}

void
fwd_rewrite_plain(struct burst *b)
{
	b->tags_out = false;
	if (b->tag_bytes != 0 && b->plain4 == burst_all(b))
		rewrite_plain(b, true, true);
	else if (b->tag_bytes != 0)
		rewrite_plain(b, false, true);
	else if (b->plain4 == burst_all(b))
		rewrite_plain(b, true, false);
	else
		rewrite_plain(b, false, false);
}

void
fwd_rewrite(struct burst *b)
{
	fwd_rewrite_plain(b);
	for (uint64_t rest = burst_all(b) & ~(b->plain4 | b->plain6); rest != 0;
	     rest &= rest - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(rest);

		if (b->verdict[i] == VERDICT_GO)
			rewrite_one(b, i);
	}
}
