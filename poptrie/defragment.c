/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Closing the holes that churn leaves in the pools: a walk over all nodes, a piece with each
 * commit, moves what is in sparsely used pages to where it stands closer. Writer thread only.
 *
 * A piece is as long as a small commit, or a few times what its commit replaced: so no commit
 * takes much longer than without, and no churn makes holes faster than they are closed. A
 * moved block is a copy; one store swings readers over, whatever they read says the same, and
 * the old block waits for its grace period. The walk remembers its place by the way down to
 * it: commits in between may change what they like, for a block keeps its place in the trie
 * and a new one is never put into a page that is to be left. Failure does no harm.
 */
#include "poptrie/node.h"

#define VISITS_A_BLOCK 4  /* for each block that the commit replaced */
#define SLOTS_A_VISIT  32 /* direct slots without a node, or words of 64 */

/* One piece of the walk. */
struct piece {
	struct poptrie *pt;
	struct pt_view *v;
	struct pt_batch *batch;
	int64_t left;   /* visits */
	bool no_memory; /* to note what was replaced */
};

/* Where a block is that may not stay: a copy. What may stay, stays. */
static uint32_t
block_move(struct piece *w, bool node, uint32_t idx, uint32_t n)
{
	struct pt_pool *pool = node ? &w->v->nodes : &w->v->leaves;
	size_t bytes = pool->elem_bytes;
	uint32_t to;

	if (!pt_pool_leaves(pool, idx) || w->no_memory)
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

/* Both blocks of a node. Returns whether it has to be published anew. */
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
 * The children of `n`, which are `level` levels below the slot's node, and all below them.
 * With `resumed`, those before walk.path[level] have had their turn. Returns false when it
 * is enough for now.
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
	/* Release: who meets the copy sees it whole. */
	if (to != e)
		atomic_store_explicit(&w->v->entry[slot], to | PT_CHILD,
				      memory_order_release);
	return children_walk(w, &n, 0, resumed);
}

/* The next slot from `s` on that may have blocks; n_slots when there is none. */
static uint32_t
slot_next(struct piece *w, uint32_t s)
{
	const struct poptrie *pt = w->pt;
	uint32_t words = (pt->n_slots + 63) / 64, from = s / 64, i = from;
	uint64_t bits;

	/* A large value that covers a fused slot without routes has a leaf, too. */
	if (s >= pt->n_slots || (!w->v->wide && w->v->leaf32))
		return s;
	/* Without routes, but not published as that yet: a commit comes that visits it. */
	bits = (pt->used[i] | pt->full[i]) & ~0ull << s % 64;
	while (bits == 0 && ++i < words)
		bits = pt->used[i] | pt->full[i];
	w->left -= (i - from) / SLOTS_A_VISIT;
	return bits ? i * 64 + (uint32_t)__builtin_ctzll(bits) : pt->n_slots;
}

/* Go on with the walk until it ends or has used up the piece. */
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
		/* Else the way down was that of a slot which has no routes any more. */
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
 * Begin to leave the sparse pages, where that saves `gain` pages of a block size at least.
 * Returns false when there are none. Tests do it where nothing is to be gained, too.
 */
bool
pt_walk_begin(struct pt_view *v, uint32_t gain)
{
	bool nodes = pt_pool_leave(&v->nodes, gain);
	bool leaves = pt_pool_leave(&v->leaves, gain);

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

/* Close holes, a piece: at the end of a commit that has published all. */
void
pt_defragment(struct poptrie *pt, struct pt_batch *batch)
{
	struct pt_view *v = pt_view(pt);
	struct piece w = {.pt = pt, .v = v, .batch = batch};

	if (!v->walk.on) {
		/* What was left waits for its readers: no page is sparse yet or again. */
		if (v->nodes.leaving != PT_NIL || v->leaves.leaving != PT_NIL ||
		    !pools_too_many_holes(v))
			return;
		if (!pt_walk_begin(v, 1)) {
			v->walk.futile = pt_pool_frag(&v->nodes) +
					 pt_pool_frag(&v->leaves) + PT_FRAG / 4;
			return;
		}
	}
	w.left = pt->least_visits + (int64_t)batch->old.n * VISITS_A_BLOCK;
	piece_walk(&w);
	if (w.no_memory) {
		pt_pool_stay(&v->nodes);
		pt_pool_stay(&v->leaves);
		v->walk.on = false;
	}
}
