/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plan the 64 slots of a node, from the radix trees or from the old node. Writer thread
 * only. The code never writes memory that readers see.
 */
#include "poptrie/plan.h"

/* Spread radix subtree `i` over the slots of a node at depth d, shorter prefixes first. */
void
pt_plan_fill(const struct pt_radix *rx, struct plan *p, uint32_t i, unsigned int d)
{
	while (i) {
		const struct pt_rnode *n = pt_rnode(rx, i);
		unsigned int s = pt_key_bits6(n->key, d), end;

		if (n->len > d + PT_STRIDE)
			break;
		if (n->value) {
			end = s + (1u << (d + PT_STRIDE - n->len));
			for (unsigned int at = s; at < end; at++)
				p->value[at] = n->value;
			p->bare &= ~((~0ull >> (64 - (end - s))) << s);
		}
		if (n->len == d + PT_STRIDE) {
			if ((n->child[0] | n->child[1]) == 0)
				return;
			break;
		}
		if (n->child[0] && n->child[1]) {
			__builtin_prefetch(pt_rnode(rx, n->child[1]));
			pt_plan_fill(rx, p, n->child[0], d);
		}
		i = n->child[1] ? n->child[1] : n->child[0];
	}
	if (i) {
		unsigned int s = pt_key_bits6(pt_rnode(rx, i)->key, d);

		p->root[s] = i;
		p->kids |= 1ull << s;
	}
}

/* Unpack an old node into a plan. Slots that no changed prefix touches stay as they are. */
void
pt_plan_open(const struct pt_view *v, struct plan *p, const struct node *old)
{
	uint32_t i = old->leaf_base;
	unsigned int s = 0, end;

	for (uint64_t m = old->run; s < 64; m &= m - 1) {
		uint32_t value = leaf_get(v, i++);

		end = m ? (unsigned int)__builtin_ctzll(m) : 64;
		for (; s < end; s++)
			p->value[s] = value;
	}
	p->kids = old->child;
	p->bare = old->bare;
}

/*
 * Plan again the slots that changed prefixes touch. Sets in *whole the slots that a changed
 * prefix covers, and in *part the other slots, which have a longer changed prefix inside.
 * The function searches the radix tree once for each changed prefix. It does not walk all
 * routes of the node, because a direct slot of a full table has a hundred routes.
 */
void
pt_plan_patch(const struct pt_radix *rx, struct plan *p, uint32_t root, unsigned int d,
	      struct above above, const struct pt_dirty *dirty, uint32_t n, uint64_t *whole,
	      uint64_t *part)
{
	*whole = *part = 0;
	for (uint32_t i = 0; i < n; i++) {
		unsigned int s = pt_key_bits6(dirty[i].key, d);
		unsigned int len = dirty[i].len;
		bool inside = len > d + PT_STRIDE;
		struct pt_key key = dirty[i].key;
		uint64_t range = 1ull << s;
		uint32_t value, match;

		if (inside) {
			len = d + PT_STRIDE;
			key = pt_key_edge(key, len, false);
		} else {
			range = (~0ull >> (64 - (1u << (d + PT_STRIDE - len)))) << s;
		}
		/*
		 * `dirty` is sorted: a shorter prefix was planned before the prefixes
		 * inside it.
		 */
		if ((range & ~(*whole | *part)) == 0)
			continue;
		match = pt_radix_match(rx, root, key, len);
		value = match ? pt_rnode(rx, match)->value : above.value;
		for (uint64_t m = range; m; m &= m - 1)
			p->value[__builtin_ctzll(m)] = value;
		p->kids &= ~range;
		p->bare &= ~range;
		if (match == 0 && above.bare)
			p->bare |= range;
		pt_plan_fill(rx, p, pt_radix_under(rx, root, key, len), d);
		if (inside)
			*part |= range;
		else
			*whole |= range;
	}
	*part &= ~*whole;
}
