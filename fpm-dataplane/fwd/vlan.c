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

/* They are all of interface `ifidx`. */
static void
walk_as(struct burst *b, uint16_t ifidx, void (*walk)(struct burst *b))
{
	struct if_counters *c = &b->fwd->count->port[ifidx];
	uint64_t bytes = burst_look(b); /* anew: tags went, and others */

	b->ifidx = ifidx;
	if (ifidx >= PORT_MAX) { /* a port's are counted */
		counter_add(&c->rx_packets, b->n);
		counter_add(&c->rx_bytes,
			    bytes + b->n * fib_tag_bytes(fib_iface(b->fwd->fib, ifidx)));
	}
	walk(b);
}

void
fwd_split(struct burst *b, void (*walk)(struct burst *b))
{
	struct rte_mbuf *m[BURST_MAX];
	uint16_t of[BURST_MAX], differ = 0;
	uint64_t left = burst_all(b);

	if (!any_tagged(b)) {
		walk(b);
		return;
	}
	of[0] = b->ifidx; /* a burst has a packet; the compiler cannot know */
	for (unsigned int i = 0; i < b->n; i++) {
		of[i] = fwd_enter(b->fwd->fib, b->ifidx, b->m[i]);
		differ |= of[i] ^ of[0];
	}
	if (differ == 0) {
		walk_as(b, of[0], walk);
		return;
	}
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
