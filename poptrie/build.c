/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Write the staged routes into the memory that readers see: rebuild the changed part of one
 * direct slot beside the old part and publish it with one store; write a changed cover (the
 * value from above a slot) into a slot that is otherwise the same; fill a whole view.
 * Writer thread only.
 *
 * A node is computed from the few radix nodes of its own six bits. Children that no changed
 * prefix touches are taken over as they are, so that a /32 among thousands of neighbors
 * touches one path. Blocks with equal contents stay in place. So do blocks that one store
 * can change to the new contents: the value of a leaf, or the place of a node's blocks.
 * Such stores need no order among themselves or with the store to the slot, because each
 * key has one place only on its path where the old table and the new one differ.
 *
 * The code must never make any other change to a block that a reader may see, and never
 * publish before all steps that can fail have succeeded.
 */
#include <errno.h>
#include "poptrie/plan.h"

struct built {
	bool uniform;
	uint32_t value; /* when uniform */
	struct node node;
};

/* A store into memory that readers see, delayed until nothing can fail. */
struct swing {
	bool leaf;        /* change a leaf; false: a node */
	uint32_t idx;     /* of the leaf or node */
	uint32_t value;   /* new value of the leaf */
	struct node node; /* new contents of the node */
};

#define ROOM_MAX (1u << 30) /* most elements of a pool */
#define N_SWINGS 32         /* most swings in a slot; beyond them, blocks are replaced */

struct build {
	struct poptrie *pt;
	struct pt_view *v;
	struct pt_batch *batch;
	unsigned int n_swings;
	struct swing swing[N_SWINGS];
};

/* Allocate a block. pt_slot_rebuild() frees it when a later step fails. */
static int
block_new(struct build *b, bool node, uint32_t n, uint32_t *idx)
{
	struct pt_pool *pool = node ? &b->v->nodes : &b->v->leaves;

	*idx = pt_pool_alloc(pool, n);
	if (*idx == PT_NIL)
		return -ENOSPC;
	if (pt_blocks_push(b->pt, &b->pt->fresh, node, *idx, n) == 0)
		return 0;
	pt_pool_free(pool, *idx, n);
	return -ENOMEM;
}

static int
block_retire(struct build *b, bool node, uint32_t idx, uint32_t n)
{
	return pt_blocks_push(b->pt, &b->batch->old, node, idx, n);
}

/* Retire the blocks of `n` and all below it, but not `n` itself. */
static int
node_retire(struct build *b, const struct node *n)
{
	int rc = block_retire(b, false, n->leaf_base, n_leaves(n));
	uint32_t i = n->child_base;

	for (uint64_t m = n->child; m && rc == 0; m &= m - 1) {
		struct node kid = node_get(b->v, i++);

		rc = node_retire(b, &kid);
	}
	if (n->child && rc == 0)
		rc = block_retire(b, true, n->child_base, i - n->child_base);
	return rc;
}

/*
 * List the stores that change the leaves of `old` in place to the values of `p`. This needs
 * equal runs and children in `old` and `now`, so that each key keeps its leaf. Returns
 * false if they differ, or if too many values differ.
 */
static bool
leaves_reuse(struct build *b, const struct plan *p, const struct node *old,
	     const struct node *now)
{
	unsigned int was = b->n_swings;
	uint32_t i;

	/*
	 * With other children, a key of the old run may go to a child now. A reader in the
	 * old node must not find the new value of the run for this key.
	 */
	if (!old || old->run != now->run || old->child != now->child)
		return false;
	i = old->leaf_base;
	for (uint64_t m = now->run | 1; m; m &= m - 1, i++) {
		uint32_t value = p->value[__builtin_ctzll(m)];

		if (leaf_get(b->v, i) == value)
			continue;
		if (b->n_swings == N_SWINGS) {
			b->n_swings = was;
			return false;
		}
		b->swing[b->n_swings++] = (struct swing){true, i, value, {0}};
	}
	return true;
}

/*
 * List the stores that change the block of children in place: one or two for each child
 * that differs. Returns false if a child cannot be changed in place or too many children
 * differ.
 */
static bool
children_reuse(struct build *b, const struct node *kid, uint32_t n, const struct node *old)
{
	unsigned int was = b->n_swings;

	for (uint32_t i = 0; i < n; i++) {
		struct node now = node_get(b->v, old->child_base + i);

		if (node_same(&now, &kid[i]))
			continue;
		if (!node_can_swing(b->v, &now, &kid[i]) || b->n_swings == N_SWINGS) {
			b->n_swings = was;
			return false;
		}
		b->swing[b->n_swings++] =
			(struct swing){false, old->child_base + i, 0, kid[i]};
	}
	for (uint32_t i = 0; i < n; i++)
		node_put_bare(b->v, old->child_base + i, kid[i].bare);
	return true;
}

/* Write the plan as a node. Old blocks with equal contents stay in use. */
static int
plan_write(struct build *b, struct plan *p, uint64_t child, const struct node *old,
	   struct built *out)
{
	const struct pt_view *v = b->v;
	uint64_t bare = p->bare;
	uint32_t rank = 0, last, n, i;
	bool keep;
	int rc;

	for (uint64_t m = child; m && !v->wide; m &= m - 1)
		p->value[__builtin_ctzll(m)] = PT_CHILD | rank++;
	last = ~child ? (uint32_t)__builtin_ctzll(~child) : 0;
	for (uint32_t s = 0; child && v->wide && s < 64; s++) {
		if (child >> s & 1) {
			p->value[s] = p->value[last];
			bare = (bare & ~(1ull << s)) | (bare >> last & 1) << s;
		} else {
			last = s;
		}
	}
	/*
	 * A value from above the direct slot (`bare`) has runs of its own, because it may
	 * change alone.
	 */
	out->node = (struct node){.run = pt_runs(p->value) | ((bare ^ bare << 1) & ~1ull),
				  .child = child,
				  .bare = p->bare};
	out->uniform = (out->node.run | child) == 0;
	out->value = p->value[0];

	keep = !out->uniform && leaves_reuse(b, p, old, &out->node);
	if (keep) {
		out->node.leaf_base = old->leaf_base;
	} else if (old) {
		rc = block_retire(b, false, old->leaf_base, n_leaves(old));
		if (rc < 0)
			return rc;
	}
	if (!keep && !out->uniform) {
		rc = block_new(b, false, n_leaves(&out->node), &i);
		if (rc < 0)
			return rc;
		out->node.leaf_base = i;
		for (uint64_t m = out->node.run | 1; m; m &= m - 1)
			leaf_put(v, i++, p->value[__builtin_ctzll(m)]);
	}

	n = (uint32_t)__builtin_popcountll(child);
	if (child && old && old->child == child && children_reuse(b, p->kid, n, old)) {
		out->node.child_base = old->child_base;
		return 0;
	}
	if (old && old->child) {
		rc = block_retire(b, true, old->child_base,
				  (uint32_t)__builtin_popcountll(old->child));
		if (rc < 0)
			return rc;
	}
	if (child == 0)
		return 0;
	rc = block_new(b, true, n, &out->node.child_base);
	for (i = 0; rc == 0 && i < n; i++)
		node_put(v, out->node.child_base + i, &p->kid[i]);
	return rc;
}

static int node_build(struct build *b, const struct node *old, unsigned int d,
		      uint32_t root, struct above above, const struct pt_dirty *dirty,
		      uint32_t n_dirty, struct built *out);

/*
 * Build only one child of `old`, without a plan for `old`, if all changes lie in this
 * child. Returns the slot of the child and sets *r and *rc. Returns -1 if there is no such
 * child, or if the slot no longer needs a child.
 */
static int
node_descend(struct build *b, const struct node *old, unsigned int d, uint32_t root,
	     struct above above, const struct pt_dirty *dirty, uint32_t n_dirty,
	     struct built *r, int *rc)
{
	const struct pt_radix *rx = &b->pt->radix;
	unsigned int s = pt_key_bits6(dirty->key, d);
	struct pt_key key = pt_key_edge(dirty->key, d + PT_STRIDE, false);
	uint32_t kid, match;
	struct node was;

	if ((old->child >> s & 1) == 0)
		return -1;
	for (uint32_t i = 0; i < n_dirty; i++)
		if (dirty[i].len <= d + PT_STRIDE || pt_key_bits6(dirty[i].key, d) != s)
			return -1;
	kid = pt_radix_under(rx, root, key, d + PT_STRIDE);
	if (kid == 0 || (pt_rnode(rx, kid)->len == d + PT_STRIDE &&
			 (pt_rnode(rx, kid)->child[0] | pt_rnode(rx, kid)->child[1]) == 0))
		return -1;
	match = pt_radix_match(rx, root, key, d + PT_STRIDE);
	if (match)
		above = (struct above){pt_rnode(rx, match)->value, false};
	was = node_child(b->v, old, s);
	*rc = node_build(b, &was, d + PT_STRIDE, kid, above, dirty, n_dirty, r);
	return (int)s;
}

/* Set *out to `old` with the child at slot s replaced by `kid`. */
static int
node_with_child(struct build *b, const struct node *old, unsigned int s,
		const struct node *kid, struct node *out)
{
	uint32_t n = (uint32_t)__builtin_popcountll(old->child);
	uint32_t at = (uint32_t)__builtin_popcountll(old->child & ((1ull << s) - 1));
	struct node was = node_get(b->v, old->child_base + at);
	int rc;

	*out = *old;
	if (node_same(&was, kid)) {
		node_put_bare(b->v, old->child_base + at, kid->bare);
		return 0;
	}
	if (node_can_swing(b->v, &was, kid) && b->n_swings < N_SWINGS) {
		b->swing[b->n_swings++] =
			(struct swing){false, old->child_base + at, 0, *kid};
		return 0;
	}
	rc = block_retire(b, true, old->child_base, n);
	if (rc == 0)
		rc = block_new(b, true, n, &out->child_base);
	if (rc < 0)
		return rc;
	nodes_copy(b->v, out->child_base, old->child_base, n);
	node_put(b->v, out->child_base + at, kid);
	return 0;
}

/*
 * Build the node at depth d over radix subtree `root`. `old` is the node that readers see
 * there (NULL: none). If n_dirty is 0, all of the node may have changed. Else `dirty` has
 * the changed prefixes, sorted, and `old` is not NULL. Returns 0, -ENOMEM or -ENOSPC (a
 * pool is full).
 */
static int
node_build(struct build *b, const struct node *old, unsigned int d, uint32_t root,
	   struct above above, const struct pt_dirty *dirty, uint32_t n_dirty,
	   struct built *out)
{
	uint64_t whole = ~0ull, part = 0, child = 0;
	uint32_t n_kids = 0, at = 0, end;
	struct built below;
	int rc = 0, only = -1;
	struct plan p;

	if (n_dirty)
		only = node_descend(b, old, d, root, above, dirty, n_dirty, &below, &rc);
	if (rc < 0)
		return rc;
	if (only >= 0 && !below.uniform) {
		out->uniform = false;
		return node_with_child(b, old, (unsigned int)only, &below.node, &out->node);
	}
	if (only >= 0) {
		pt_plan_open(b->v, &p, old);
		whole = 0;
	} else if (n_dirty) {
		pt_plan_open(b->v, &p, old);
		pt_plan_patch(&b->pt->radix, &p, root, d, above, dirty, n_dirty, &whole,
			      &part);
	} else {
		p.kids = 0;
		p.bare = above.bare ? ~0ull : 0;
		for (unsigned int s = 0; s < 64; s++)
			p.value[s] = above.value;
		pt_plan_fill(&b->pt->radix, &p, root, d);
	}

	for (uint64_t m = p.kids; m; m &= m - 1) {
		unsigned int s = (unsigned int)__builtin_ctzll(m);
		struct above top = {p.value[s], p.bare >> s & 1};
		bool had = old && (old->child >> s & 1);
		struct node was;
		struct built r;

		if (had)
			was = node_child(b->v, old, s);
		if ((int)s == only) {
			r = below;
		} else if ((whole >> s & 1) || ((part >> s & 1) && !had)) {
			rc = node_build(b, had ? &was : NULL, d + PT_STRIDE, p.root[s], top,
					NULL, 0, &r);
			if (rc < 0)
				return rc;
		} else if (part >> s & 1) {
			while (pt_key_bits6(dirty[at].key, d) != s)
				at++;
			for (end = at; end < n_dirty; end++)
				if (pt_key_bits6(dirty[end].key, d) != s)
					break;
			rc = node_build(b, &was, d + PT_STRIDE, p.root[s], top, dirty + at,
					end - at, &r);
			if (rc < 0)
				return rc;
		} else {
			r = (struct built){.node = was};
		}
		if (r.uniform) {
			p.value[s] = r.value;
			p.bare &= ~(1ull << s); /* a prefix fills the slot */
		} else {
			p.kid[n_kids++] = r.node;
			child |= 1ull << s;
		}
	}
	for (uint64_t m = old ? old->child & ~p.kids : 0; m; m &= m - 1) {
		struct node was = node_child(b->v, old, (unsigned int)__builtin_ctzll(m));

		rc = node_retire(b, &was);
		if (rc < 0)
			return rc;
	}
	return plan_write(b, &p, child, old, out);
}

static int
fused_slot(struct build *b, uint32_t slot, const struct pt_dirty *dirty, uint32_t n_dirty,
	   uint32_t cover)
{
	struct pt_fused was = b->v->fused[slot], now;
	struct node old = {0};
	uint32_t root = b->pt->slot[slot].root, value = was.leaf_base, idx;
	bool leaf = was.run == 0 && was.leaf_base > PT_VALUE16;
	struct built r = {.uniform = true, .value = cover};
	int rc;

	if (leaf)
		value = leaf_get(b->v, was.leaf_base);
	if (was.run)
		old = fused_open(b->v, &was, b->v->bare_slot[slot]);
	if (was.run || root) {
		rc = node_build(b, was.run ? &old : NULL, PT4_BITS, root,
				(struct above){cover, true}, dirty, was.run ? n_dirty : 0,
				&r);
		if (rc < 0)
			return rc;
	}
	if (r.uniform) {
		if (was.run == 0 && r.value == value)
			return 0;
		now = (struct pt_fused){0, r.value, 0};
		if (r.value > PT_VALUE16) {
			rc = block_new(b, false, 1, &idx);
			if (rc < 0)
				return rc;
			leaf_put(b->v, idx, r.value);
			now.leaf_base = idx;
		}
	} else {
		b->v->bare_slot[slot] = r.node.bare;
		if (was.run && node_same(&old, &r.node))
			return 0;
		now = (struct pt_fused){r.node.run, r.node.leaf_base, r.node.child_base};
	}
	if (leaf) {
		rc = block_retire(b, false, was.leaf_base, 1);
		if (rc < 0)
			return rc;
	}
	fused_publish(&b->v->fused[slot], now);
	return 0;
}

static int
wide_slot(struct build *b, uint32_t slot, const struct pt_dirty *dirty, uint32_t n_dirty,
	  uint32_t cover, unsigned int bits)
{
	uint32_t was = atomic_load_explicit(&b->v->entry[slot], memory_order_relaxed), now;
	uint32_t root = b->pt->slot[slot].root;
	struct built r = {.uniform = true, .value = cover};
	bool node = was & PT_CHILD;
	struct node old = {0};
	int rc;

	if (node)
		old = node_get(b->v, was & ~PT_CHILD);
	if (node || root) {
		rc = node_build(b, node ? &old : NULL, bits, root,
				(struct above){cover, true}, dirty, node ? n_dirty : 0, &r);
		if (rc < 0)
			return rc;
	}
	if (r.uniform) {
		now = r.value;
		if (now == was)
			return 0;
	} else {
		if (node && node_can_swing(b->v, &old, &r.node)) {
			node_swing(b->v, was & ~PT_CHILD, &r.node);
			return 0;
		}
		rc = block_new(b, true, 1, &now);
		if (rc < 0)
			return rc;
		node_put(b->v, now, &r.node);
		now |= PT_CHILD;
	}
	if (node) {
		rc = block_retire(b, true, was & ~PT_CHILD, 1);
		if (rc < 0)
			return rc;
	}
	/* Release: a reader that sees the node also sees all below it. */
	atomic_store_explicit(&b->v->entry[slot], now, memory_order_release);
	return 0;
}

/*
 * Rebuild one slot of view `v` from the staged routes. `uncovered` is the value to write
 * where no prefix matches, normally 0. `batch` receives the replaced blocks; it is NULL for
 * an empty view without readers. `dirty` has the changed prefixes of the slot; with n_dirty
 * 0, the whole slot is rebuilt. Returns 0, or -ENOMEM or -ENOSPC with nothing changed.
 */
int
pt_slot_rebuild(struct poptrie *pt, struct pt_view *v, struct pt_batch *batch,
		uint32_t slot, const struct pt_dirty *dirty, uint32_t n_dirty,
		uint32_t uncovered)
{
	struct build b;
	size_t mark = batch ? batch->old.n : 0;
	uint32_t cover = pt->slot[slot].cover ? pt->slot[slot].cover : uncovered;
	unsigned int bits = PT6_OTHER;
	int rc;

	b.pt = pt;
	b.v = v;
	b.batch = batch;
	b.n_swings = 0;
	if (v->wide) {
		if (v->small)
			bits = PT_SMALL_BITS;
		else if (!pt->ip6)
			bits = PT4_BITS;
		else if (slot - (1u << (PT6_OTHER - 3)) < 1u << (PT6_BITS - 3))
			bits = PT6_BITS;
		rc = wide_slot(&b, slot, dirty, n_dirty, cover, bits);
	} else {
		rc = fused_slot(&b, slot, dirty, n_dirty, cover);
	}
	if (rc < 0) {
		pt_blocks_free(v, &pt->fresh);
		if (batch)
			batch->old.n = mark;
	}
	for (unsigned int i = 0; rc == 0 && i < b.n_swings; i++) {
		if (b.swing[i].leaf)
			leaf_swing(v, b.swing[i].idx, b.swing[i].value);
		else
			node_swing(v, b.swing[i].idx, &b.swing[i].node);
	}
	pt->fresh.n = 0;
	pt->slots_rebuilt++;
	return rc;
}

/*
 * Write the value of a prefix shorter than a direct slot into a slot without rebuilding it.
 * Such a prefix may cover a thousand slots.
 *
 * Where no prefix of the slot matches, the leaves have runs of their own, even if a leaf
 * beside them has the same value. So this function changes only leaves, each by one store
 * in place, and a reader sees for each key the old or the new value. It must never change
 * a run or a node, and needs no memory.
 */
static void
node_set_cover(const struct pt_view *v, const struct node *n, uint32_t value)
{
	uint64_t first = ~n->child & -~n->child; /* the slot of the first leaf */

	for (uint64_t m = (n->run | first) & n->bare & ~n->child; m; m &= m - 1) {
		uint64_t upto = m ^ (m - 1);

		leaf_swing(v, n->leaf_base + (uint32_t)__builtin_popcountll(n->run & upto),
			   value);
	}
	for (uint64_t m = n->child & n->bare; m; m &= m - 1) {
		struct node kid = node_child(v, n, (unsigned int)__builtin_ctzll(m));

		if (kid.bare)
			node_set_cover(v, &kid, value);
	}
}

/*
 * Update a slot in which only the cover changed. Returns false when the slot needs a
 * rebuild: its old or its new value needs a leaf of its own, because it has more than 15
 * bits.
 */
bool
pt_slot_set_cover(const struct poptrie *pt, struct pt_view *v, uint32_t slot,
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
			node_set_cover(v, &n, cover);
		} else if (root == 0 && e != cover) {
			/* Release: see leaf_swing(). The value leads to no node. */
			atomic_store_explicit(&v->entry[slot], cover, memory_order_release);
		}
		return true;
	}
	f = v->fused[slot];
	if (f.run) {
		n = fused_open(v, &f, v->bare_slot[slot]);
		node_set_cover(v, &n, cover);
		return true;
	}
	/* In a uniform slot with routes, one of these routes covers the whole slot. */
	if (root)
		return true;
	if (f.leaf_base > PT_VALUE16 || cover > PT_VALUE16)
		return false;
	fused_publish(&v->fused[slot], (struct pt_fused){0, cover, 0});
	return true;
}

/* Fill a new view from the staged routes. Returns 0, -ENOMEM or -ENOSPC. */
static int
view_fill(struct poptrie *pt, struct pt_view *v)
{
	int rc = 0;

	for (uint32_t s = 0; s < pt->n_slots && rc == 0; s++)
		if (pt->slot[s].root | pt->slot[s].cover)
			rc = pt_slot_rebuild(pt, v, NULL, s, NULL, 0, 0);
	atomic_store_explicit(&v->dflt, pt->dflt, memory_order_relaxed);
	return rc;
}

/*
 * Build a new view from all staged routes and direct readers to it. The old view goes into
 * the batch. Returns 0, or -ENOMEM with nothing changed.
 */
int
pt_view_rebuild(struct poptrie *pt, struct pt_batch *batch, bool leaf32)
{
	struct pt_view *old = batch->of, *v;
	uint32_t leaf_cap = old->leaves.n_pages * old->leaves.page_elems;
	uint32_t node_cap = old->nodes.n_pages * old->nodes.page_elems;
	int rc;

	/*
	 * A pool that has at most half of its elements in use keeps its capacity: if it had
	 * no room, holes were the cause.
	 */
	if (old->leaves.live > leaf_cap / 2)
		leaf_cap *= 2;
	if (old->nodes.live > node_cap / 2)
		node_cap *= 2;
	for (;;) {
		v = pt_view_new(pt, leaf32, leaf_cap, node_cap);
		if (!v)
			return -ENOMEM;
		rc = view_fill(pt, v);
		if (rc == 0)
			break;
		if (v->leaves.top == v->leaves.n_pages)
			leaf_cap *= 2;
		if (v->nodes.top == v->nodes.n_pages)
			node_cap *= 2;
		pt_view_put(pt, v);
		if (rc != -ENOSPC || leaf_cap > ROOM_MAX || node_cap > ROOM_MAX)
			return -ENOMEM;
	}
	batch->gone = old;
	/* Release: a reader that follows the pointer sees the view complete. */
	atomic_store_explicit(&pt->view, v, memory_order_release);
	return 0;
}
