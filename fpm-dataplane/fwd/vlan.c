/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames of a port that has VLANs: each belongs to an interface, and the walk is one
 * interface's. Here they are told apart, lose the tags that led there, and walk together
 * with others of their interface. A port without VLANs never comes here.         [fwd-n]
 */
#include "port/vlan.h"
#include "fwd/burst.h"

uint16_t
fwd_enter(const struct fib *fib, uint16_t ifidx, struct rte_mbuf *m)
{
	unsigned int at;
	uint16_t in = vlan_find(fib, ifidx, rte_pktmbuf_mtod(m, uint8_t *),
				rte_pktmbuf_data_len(m), &at);

	if (at > VLAN_AT)
		vlan_strip(m, (at - VLAN_AT) / VLAN_BYTES);
	return in;
}

void
fwd_untag(struct burst *b, unsigned int i)
{
	if (rte_pktmbuf_data_len(b->m[i]) >= L2_LEN + b->tag_bytes)
		vlan_strip(b->m[i], b->tag_bytes / VLAN_BYTES);
	else /* it ends within its tags: a frame with tags that lead nowhere */
		b->l2[i] -= b->tag_bytes;
}

/* Has any of them a tag? Too short ones have what was there before. */
static bool
any_tagged(const struct burst *b)
{
	bool any = false;

	for (unsigned int i = 0; i < b->n; i++) {
		uint16_t type = get_be16(burst_l2(b, i) + VLAN_AT);

		any |= type == VLAN_C_TYPE || type == VLAN_S_TYPE;
	}
	return any;
}

/* They are all of interface `ifidx`, and their octets known. */
static void
walk_as(struct burst *b, uint16_t ifidx, void (*walk)(struct burst *b))
{
	struct if_counters *c = &b->fwd->count->port[ifidx];

	b->ifidx = ifidx;
	if (ifidx >= PORT_MAX) { /* a port's are counted */
		counter_add(&c->rx_packets, b->n);
		counter_add(&c->rx_bytes, b->bytes);
	}
	walk(b);
}

/*
 * Where `n` tags are, and what decides that there are no more, as burst_tags() has them: all
 * but priorities. `more`: the interface that they lead to has VLANs, or it is a port.
 */
static uint64_t
tags_mask(unsigned int n, bool more, const uint8_t *frame)
{
	const uint64_t tag = __builtin_bswap32(~VLAN_PRIORITY);
	uint16_t type = get_be16(frame + VLAN_AT + n * VLAN_BYTES);
	uint64_t mask = n == 0 ? 0 : n == 1 ? tag : tag | tag << 32;

	if (n < VLAN_TAGS && more) /* of what is no tag the type is all that matters */
		mask |= (type == VLAN_C_TYPE || type == VLAN_S_TYPE ? tag : 0xffff)
			<< n * 32;
	return mask;
}

/* All tags that lead somewhere, and another one, are within so many octets. */
#define LONG_ENOUGH (VLAN_AT + (VLAN_TAGS + 1) * VLAN_BYTES)

uint16_t
fwd_look(struct burst *b)
{
	const struct fib *fib = b->fwd->fib;
	const uint8_t *first = rte_pktmbuf_mtod(b->m[0], const uint8_t *);
	unsigned int at, n;
	uint16_t of = vlan_find(fib, b->ifidx, first, rte_pktmbuf_data_len(b->m[0]), &at);
	uint64_t differ;

	n = (at - VLAN_AT) / VLAN_BYTES;
	differ = burst_look_tags(b, (uint8_t)(n * VLAN_BYTES), burst_tags(first)) &
		 tags_mask(n, fib_vlans(fib, of) != NULL, first);
	/*
	 * Who looks wants to see frames as they are; what the NIC took off comes before ours; a
	 * first one that ends early says nothing of others.
	 */
	if (differ == 0 && rte_pktmbuf_data_len(b->m[0]) >= LONG_ENOUGH &&
	    !fwd_watched(b->fwd) && (b->any_flags & VLAN_STRIPPED) == 0)
		return of;
	burst_look(b);
	return 0;
}

void
fwd_split(struct burst *b, uint16_t of_all, void (*walk)(struct burst *b))
{
	struct rte_mbuf *m[BURST_MAX];
	uint16_t of[BURST_MAX];
	uint64_t left = burst_all(b);

	if (of_all != 0) {
		walk_as(b, of_all, walk);
		return;
	}
	if (!any_tagged(b)) {
		walk(b);
		return;
	}
	for (unsigned int i = 0; i < b->n; i++)
		of[i] = fwd_enter(b->fwd->fib, b->ifidx, b->m[i]);
	memcpy(m, b->m, b->n * sizeof(m[0]));
	while (left != 0) {
		uint16_t ifidx = of[__builtin_ctzll(left)];

		b->n = 0;
		for (uint64_t rest = left; rest != 0; rest &= rest - 1) {
			unsigned int i = (unsigned int)__builtin_ctzll(rest);

			if (of[i] != ifidx)
				continue;
			b->m[b->n++] = m[i];
			left &= ~(rest & -rest);
		}
		burst_look(b); /* anew: tags went, and others */
		if (ifidx >= PORT_MAX)
			b->bytes += b->n * fib_tag_bytes(fib_iface(b->fwd->fib, ifidx));
		walk_as(b, ifidx, walk);
	}
}

bool
fwd_priority_tag(struct burst *b, unsigned int i)
{
	const uint8_t *eth = burst_l2(b, i);
	bool is = rte_pktmbuf_data_len(b->m[i]) >= L2_LEN + VLAN_BYTES &&
		  get_be16(eth + VLAN_AT) == VLAN_C_TYPE &&
		  (get_be16(eth + VLAN_AT + 2) & ~VLAN_PRIORITY) == 0 &&
		  vlan_stripped(b->m[i]) < VLAN_TAGS;

	if (is) {
		vlan_strip(b->m[i], 1);
		b->l2[i] = rte_pktmbuf_mtod(b->m[i], uint8_t *);
	}
	return is;
}
