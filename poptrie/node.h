/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Read and write nodes and leaves of either layout. Writer thread only. Only build.c and
 * defragment.c change published nodes and leaves.
 */
#ifndef POPTRIE_NODE_H
#define POPTRIE_NODE_H

#include <string.h>
#include "poptrie/arch.h"

/* A node of either layout, unpacked. */
struct node {
	uint64_t run, child;
	uint64_t bare; /* slots that no prefix of the direct slot's own radix tree covers */
	uint32_t leaf_base, child_base;
};

static inline uint32_t
leaf_get(const struct pt_view *v, uint32_t i)
{
	uint32_t leaf;

	if (v->leaf32)
		return ((const uint32_t *)v->leaf)[i];
	leaf = ((const uint16_t *)v->leaf)[i];
	return (leaf & 0x8000u) << 16 | (leaf & PT_VALUE16);
}

static inline void
leaf_put(const struct pt_view *v, uint32_t i, uint32_t leaf)
{
	if (v->leaf32)
		((uint32_t *)v->leaves.mem)[i] = leaf;
	else
		((uint16_t *)v->leaves.mem)[i] = (uint16_t)(leaf >> 16 | leaf);
}

static inline uint32_t
n_leaves(const struct node *n)
{
	return (uint32_t)__builtin_popcountll(n->run) + 1;
}

static inline struct node
fused_open(const struct pt_view *v, const struct pt_fused *f, uint64_t bare)
{
	struct node n = {.run = f->run,
			 .bare = bare,
			 .leaf_base = f->leaf_base,
			 .child_base = f->child_base};
	uint64_t starts = f->run | 1;

	for (uint32_t i = f->leaf_base; starts; i++, starts &= starts - 1)
		if (leaf_get(v, i) & PT_CHILD)
			n.child |= starts & -starts;
	return n;
}

static inline struct node
node_get(const struct pt_view *v, uint32_t i)
{
	const struct pt_wide *w = (const struct pt_wide *)v->node + i;

	if (!v->wide)
		return fused_open(v, (const struct pt_fused *)v->node + i, v->bare[i]);
	return (struct node){w->run, w->child, w->bare, w->leaf_base, w->child_base};
}

static inline void
node_put(const struct pt_view *v, uint32_t i, const struct node *n)
{
	if (v->wide) {
		((struct pt_wide *)v->nodes.mem)[i] = (struct pt_wide){
			.child = n->child,
			.child_base = n->child_base,
			.leaf_base = n->leaf_base,
			.run = n->run,
			.bare = n->bare,
		};
		return;
	}
	((struct pt_fused *)v->nodes.mem)[i] =
		(struct pt_fused){n->run, n->leaf_base, n->child_base};
	v->bare[i] = n->bare;
}

/* Copy nodes to a block that is not published yet. */
static inline void
nodes_copy(const struct pt_view *v, uint32_t to, uint32_t from, uint32_t n)
{
	size_t bytes = v->nodes.elem_bytes;

	memcpy((uint8_t *)v->nodes.mem + to * bytes,
	       (const uint8_t *)v->nodes.mem + from * bytes, n * bytes);
	if (!v->wide)
		memcpy(v->bare + to, v->bare + from, n * sizeof(*v->bare));
}

/* Set `bare` of a node. Readers never read it, so the writer may change it at any time. */
static inline void
node_put_bare(const struct pt_view *v, uint32_t i, uint64_t bare)
{
	if (v->wide)
		((struct pt_wide *)v->nodes.mem)[i].bare = bare;
	else
		v->bare[i] = bare;
}

/*
 * Return true if the nodes are equal for readers; `bare` may differ. Readers of a fused
 * node find `child` in the leaves.
 */
static inline bool
node_same(const struct node *a, const struct node *b)
{
	return a->run == b->run && a->child == b->child && a->leaf_base == b->leaf_base &&
	       a->child_base == b->child_base;
}

/*
 * Return true if `was` can become `now` while readers use it: one store changes the result
 * for each key.
 */
static inline bool
node_can_swing(const struct pt_view *v, const struct node *was, const struct node *now)
{
	return !v->wide || (was->run == now->run && was->child == now->child);
}

/* Return the child of `n` at slot s. */
static inline struct node
node_child(const struct pt_view *v, const struct node *n, unsigned int s)
{
	uint64_t below = n->child & ((1ull << s) - 1);

	return node_get(v, n->child_base + (uint32_t)__builtin_popcountll(below));
}

/*
 * Change a published node. A fused node is replaced as a whole. In a wide node only the
 * bases change; they do not depend on each other, because a key follows one or the other.
 */
static inline void
node_swing(const struct pt_view *v, uint32_t i, const struct node *n)
{
	struct pt_wide *w = (struct pt_wide *)v->nodes.mem + i;

	node_put_bare(v, i, n->bare);
	if (!v->wide) {
		fused_publish((struct pt_fused *)v->nodes.mem + i,
			      (struct pt_fused){n->run, n->leaf_base, n->child_base});
		return;
	}
	/* Release: a reader that follows a base sees the block complete. */
	__atomic_store_n(&w->leaf_base, n->leaf_base, __ATOMIC_RELEASE);
	__atomic_store_n(&w->child_base, n->child_base, __ATOMIC_RELEASE);
}

/* Change a published leaf. */
static inline void
leaf_swing(const struct pt_view *v, uint32_t i, uint32_t value)
{
	/*
	 * Release: a reader that sees the value also sees all earlier stores of the caller.
	 */
	if (v->leaf32)
		__atomic_store_n((uint32_t *)v->leaves.mem + i, value, __ATOMIC_RELEASE);
	else
		__atomic_store_n((uint16_t *)v->leaves.mem + i, (uint16_t)value,
				 __ATOMIC_RELEASE);
}

#endif
