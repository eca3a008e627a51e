/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A prefix shorter than a direct slot changed: show its value through a thousand slots
 * without rebuilding them. Writer thread only.
 *
 * Where nothing in a slot matches, the leaves have runs of their own, also beside an equal
 * value; so only leaves change, each by one store in place. A reader sees for each key the
 * value of before or after. It must never change a run or a node, and needs no memory.
 */
#include "poptrie/node.h"

static void
node_recover(const struct pt_view *v, const struct node *n, uint32_t value)
{
	uint64_t first = ~n->child & -~n->child; /* where the first leaf shows */

	for (uint64_t m = (n->run | first) & n->bare & ~n->child; m; m &= m - 1) {
		uint64_t upto = m ^ (m - 1);

		leaf_swing(v, n->leaf_base + (uint32_t)__builtin_popcountll(n->run & upto),
			   value);
	}
	for (uint64_t m = n->child & n->bare; m; m &= m - 1) {
		struct node kid = node_child(v, n, (unsigned int)__builtin_ctzll(m));

		if (kid.bare)
			node_recover(v, &kid, value);
	}
}

/*
 * Bring one slot of which nothing but the cover has changed up to the truth. Returns false
 * when that takes a rebuild: a value that has no leaf of its own needs or leaves one.
 */
bool
pt_slot_recover(const struct poptrie *pt, struct pt_view *v, uint32_t slot,
		uint32_t uncovered)
{
	uint32_t cover = pt->slot[slot].cover ? pt->slot[slot].cover : uncovered;
	uint32_t root = pt->slot[slot].root, e;
	struct pt_fused f;
	struct node n;

	if (v->wide) {
		e = atomic_load_explicit(&v->entry[slot], memory_order_relaxed);
		if (e & PT_CHILD) {
			n = node_get(v, e & ~PT_CHILD);
			node_recover(v, &n, cover);
		} else if (root == 0 && e != cover) {
			atomic_store_explicit(&v->entry[slot], cover, memory_order_release);
		}
		return true;
	}
	f = v->fused[slot];
	if (f.run) {
		n = fused_open(v, &f, v->bare_slot[slot]);
		node_recover(v, &n, cover);
		return true;
	}
	/* With routes inside, a uniform slot is filled by one of them. */
	if (root)
		return true;
	if (f.leaf_base > PT_VALUE16 || cover > PT_VALUE16)
		return false;
	fused_publish(&v->fused[slot], (struct pt_fused){0, cover, 0});
	return true;
}
