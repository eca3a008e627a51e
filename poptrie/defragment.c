/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Close the holes that changes leave in the pools. A walk over all nodes moves the blocks
 * of sparsely used pages into fuller pages. Each commit runs one piece of the walk. Writer
 * thread only.
 *
 * A piece takes as long as a small commit, plus a few visits for each block that its commit
 * replaced. Therefore no commit takes much longer than without the walk, and changes cannot
 * make holes faster than the walk closes them. A moved block is a copy. One store directs
 * readers to it; both copies have the same contents, and the old block waits for its grace
 * period. The walk stores its position as the path to the next node. Commits between two
 * pieces may change anything, because a block keeps its place in the trie and no new block
 * is put into a leaving page. A failed allocation does no harm: the block stays where it
 * is.
 */
#include "poptrie/node.h"

#define VISITS_A_BLOCK 4 /* visits for each block that the commit replaced */
/*
 * Direct slots without a node, or words of 64 slots without blocks, that count as a visit.
 */
#define SLOTS_A_VISIT 32

/* The state of one piece of the walk. */
struct piece {
	struct poptrie *pt;
	struct pt_view *v;
	struct pt_batch *batch;
	int64_t left;   /* visits left */
	bool no_memory; /* no memory to list a replaced block */
};

/* Return the new index of a block: a copy if its page is leaving, else the block itself. */
static uint32_t
block_move(struct piece *w, bool node, uint32_t idx, uint32_t n)
{
	struct pt_pool *pool = node ? &w->v->nodes : &w->v->leaves;
	size_t bytes = pool->elem_bytes;
	uint32_t to;

	if (!pt_pool_is_leaving(pool, idx) || w->no_memory)
		return idx;
	to = pt_pool_alloc(pool, n);
	if (to == PT_NIL)
		return idx;
	if (pt_blocks_push(w->pt, &w->batch->old, node, idx, n) < 0) {
		pt_pool_free(pool, to, n);
		w->no_memory = true;
		return idx;
	}
	if (node)
		nodes_copy(w->v, to, idx, n);
	else
		memcpy((uint8_t *)pool->mem + to * bytes,
		       (const uint8_t *)pool->mem + idx * bytes, n * bytes);
	return to;
}

/* Move both blocks of a node. Returns true if the node has to be published again. */
static bool
blocks_move(struct piece *w, struct node *n)
{
	struct node was = *n;

	n->leaf_base = block_move(w, false, n->leaf_base, n_leaves(n));
	if (n->child)
		n->child_base = block_move(w, true, n->child_base,
					   (uint32_t)__builtin_popcountll(n->child));
	return !node_same(&was, n);
}

/*
 * Walk the children of `n`, which are `level` levels below the slot's node, and all below
 * them. With `resumed`, the children before walk.path[level] are done. Returns false at the
 * end of the piece.
 */
static bool
children_walk(struct piece *w, const struct node *n, unsigned int level, bool resumed)
{
	struct pt_walk *at = &w->v->walk;
	uint32_t i = n->child_base;

	for (uint64_t m = n->child; m; m &= m - 1, i++) {
		unsigned int s = (unsigned int)__builtin_ctzll(m);
		bool same = resumed && s == at->path[level];
		struct node kid;

		if (resumed && s < at->path[level])
			continue;
		at->path[level] = (uint8_t)s;
		if (w->left-- <= 0) {
			at->n_path = level + 1;
			return false;
		}
		kid = node_get(w->v, i);
		if (blocks_move(w, &kid))
			node_swing(w->v, i, &kid);
		if (kid.child &&
		    !children_walk(w, &kid, level + 1, same && level + 1 < at->n_path))
			return false;
	}
	return true;
}

static bool
fused_walk(struct piece *w, uint32_t slot, bool resumed)
{
	struct pt_fused f = w->v->fused[slot];
	struct node n;

	if (f.run == 0) {
		if (f.leaf_base <= PT_VALUE16)
			return true;
		f.leaf_base = block_move(w, false, f.leaf_base, 1);
		if (f.leaf_base != w->v->fused[slot].leaf_base)
			fused_publish(&w->v->fused[slot], f);
		return true;
	}
	w->left--;
	n = fused_open(w->v, &f, w->v->bare_slot[slot]);
	if (blocks_move(w, &n))
		fused_publish(&w->v->fused[slot],
			      (struct pt_fused){n.run, n.leaf_base, n.child_base});
	return children_walk(w, &n, 0, resumed);
}

static bool
wide_walk(struct piece *w, uint32_t slot, bool resumed)
{
	uint32_t e = atomic_load_explicit(&w->v->entry[slot], memory_order_relaxed), to;
	struct node n;

	if ((e & PT_CHILD) == 0)
		return true;
	w->left--;
	e &= ~PT_CHILD;
	to = block_move(w, true, e, 1);
	n = node_get(w->v, to);
	if (blocks_move(w, &n))
		node_swing(w->v, to, &n);
	/* Release: a reader that sees the copy sees it complete. */
	if (to != e)
		atomic_store_explicit(&w->v->entry[slot], to | PT_CHILD,
				      memory_order_release);
	return children_walk(w, &n, 0, resumed);
}

/* Return the next slot from `s` on that may have blocks, or n_slots when there is none. */
static uint32_t
slot_next(struct piece *w, uint32_t s)
{
	const struct poptrie *pt = w->pt;
	uint32_t words = (pt->n_slots + 63) / 64, from = s / 64, i = from;
	uint64_t bits;

	/*
	 * A fused slot without routes has a leaf as well, if the value that covers it has
	 * more than 15 bits. So with 32-bit leaves each slot may have blocks.
	 */
	if (s >= pt->n_slots || (!w->v->wide && w->v->leaf32))
		return s;
	/* A slot in `full` may still have blocks without routes, until the next commit. */
	bits = (pt->used[i] | pt->full[i]) & ~0ull << s % 64;
	while (bits == 0 && ++i < words)
		bits = pt->used[i] | pt->full[i];
	w->left -= (i - from) / SLOTS_A_VISIT;
	return bits ? i * 64 + (uint32_t)__builtin_ctzll(bits) : pt->n_slots;
}

/* Continue the walk until it ends or the piece is used up. */
static void
piece_walk(struct piece *w)
{
	struct pt_walk *at = &w->v->walk;
	bool resumed, whole;
	uint32_t slot;

	while (w->left > 0 && !w->no_memory) {
		slot = slot_next(w, at->slot);
		if (slot >= w->pt->n_slots) {
			at->on = false;
			return;
		}
		/*
		 * When the slot of the stored path has no routes left, begin the next slot
		 * at its top.
		 */
		resumed = slot == at->slot && at->n_path > 0;
		at->slot = slot;
		whole = w->v->wide ? wide_walk(w, slot, resumed)
				   : fused_walk(w, slot, resumed);
		if (!whole)
			return;
		at->n_path = 0;
		if (++at->slot % SLOTS_A_VISIT == 0)
			w->left--;
	}
}

/*
 * Mark the sparse pages as leaving and begin a walk, if that frees `gain` or more pages of
 * one block size. Returns false when it does not. Tests call this with a gain of 0.
 */
bool
pt_walk_begin(struct pt_view *v, uint32_t gain)
{
	bool nodes = pt_pool_mark_leaving(&v->nodes, gain);
	bool leaves = pt_pool_mark_leaving(&v->leaves, gain);

	v->walk = (struct pt_walk){.on = nodes || leaves};
	return v->walk.on;
}

static bool
pools_too_many_holes(const struct pt_view *v)
{
	const struct pt_pool *pool[] = {&v->nodes, &v->leaves};

	for (int i = 0; i < 2; i++)
		if (pt_pool_frag(pool[i]) >=
		    PT_FRAG + (size_t)pool[i]->live * pool[i]->elem_bytes / 2)
			return pt_pool_frag(&v->nodes) + pt_pool_frag(&v->leaves) >=
			       v->walk.futile;
	return false;
}

/* Run one piece of the walk. Called at the end of a commit, when all is published. */
void
pt_defragment(struct poptrie *pt, struct pt_batch *batch)
{
	struct pt_view *v = pt_view(pt);
	struct piece w = {.pt = pt, .v = v, .batch = batch};

	if (!v->walk.on) {
		/*
		 * Pages of the last walk still wait for their readers: begin no other walk.
		 */
		if (v->nodes.leaving != PT_NIL || v->leaves.leaving != PT_NIL ||
		    !pools_too_many_holes(v))
			return;
		if (!pt_walk_begin(v, 1)) {
			v->walk.futile = pt_pool_frag(&v->nodes) +
					 pt_pool_frag(&v->leaves) + PT_FRAG / 4;
			return;
		}
	}
	w.left = pt->min_visits + (int64_t)batch->old.n * VISITS_A_BLOCK;
	piece_walk(&w);
	if (w.no_memory) {
		pt_pool_unmark_leaving(&v->nodes);
		pt_pool_unmark_leaving(&v->leaves);
		v->walk.on = false;
	}
}
