/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From the truth to what readers see: rebuild the changed part of one direct slot beside
 * the old one, then publish it with one store. Writer thread only.
 *
 * A node is computed anew from the few radix nodes of its own six bits; children that no
 * changed prefix touches are carried over as they are, so that a /32 among thousands of
 * neighbours rewrites one path. Blocks that come out equal are kept.
 *
 * It must never write into a block that a reader may see, and never publish before all
 * that can fail has been done.
 */
#include <errno.h>
#include <string.h>
#include <emmintrin.h>
#include "impl.h"

/* A node of either layout, taken apart. */
struct node {
	uint64_t run, child;
	uint32_t leaf_base, child_base;
};

struct built {
	bool uniform;
	uint32_t value; /* when uniform */
	struct node node;
};

struct build {
	struct poptrie *pt;
	struct pt_view *v;
	struct pt_batch *batch;
};

static uint32_t
leaf_get(const struct pt_view *v, uint32_t i)
{
	uint32_t leaf;

	if (v->leaf32)
		return ((const uint32_t *)v->leaf)[i];
	leaf = ((const uint16_t *)v->leaf)[i];
	return (leaf & 0x8000u) << 16 | (leaf & PT_VALUE16);
}

static void
leaf_put(const struct pt_view *v, uint32_t i, uint32_t leaf)
{
	if (v->leaf32)
		((uint32_t *)v->leaves.mem)[i] = leaf;
	else
		((uint16_t *)v->leaves.mem)[i] = (uint16_t)(leaf >> 16 | leaf);
}

static uint32_t
n_leaves(const struct node *n)
{
	return (uint32_t)__builtin_popcountll(n->run) + 1;
}

static struct node
fused_open(const struct pt_view *v, const struct pt_fused *f)
{
	struct node n = {
		.run = f->run, .leaf_base = f->leaf_base, .child_base = f->child_base};
	uint64_t starts = f->run | 1;

	for (uint32_t i = f->leaf_base; starts; i++, starts &= starts - 1)
		if (leaf_get(v, i) & PT_CHILD)
			n.child |= starts & -starts;
	return n;
}

static struct node
node_get(const struct pt_view *v, uint32_t i)
{
	const struct pt_wide *w = (const struct pt_wide *)v->node + i;

	if (!v->wide)
		return fused_open(v, (const struct pt_fused *)v->node + i);
	return (struct node){w->run, w->child, w->leaf_base, w->child_base};
}

static void
node_put(const struct pt_view *v, uint32_t i, const struct node *n)
{
	if (v->wide)
		((struct pt_wide *)v->nodes.mem)[i] = (struct pt_wide){
			.child = n->child,
			.run = n->run,
			.child_base = n->child_base,
			.leaf_base = n->leaf_base,
		};
	else
		((struct pt_fused *)v->nodes.mem)[i] =
			(struct pt_fused){n->run, n->leaf_base, n->child_base};
}

static bool
node_same(const struct node *a, const struct node *b)
{
	return a->run == b->run && a->child == b->child && a->leaf_base == b->leaf_base &&
	       a->child_base == b->child_base;
}

/* The child of `n` at slot s. */
static struct node
node_child(const struct pt_view *v, const struct node *n, unsigned int s)
{
	uint64_t below = n->child & ((1ull << s) - 1);

	return node_get(v, n->child_base + (uint32_t)__builtin_popcountll(below));
}

/* A new block, undone by pt_slot_rebuild() when a later step fails. */
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

/* Retire all below and of `n`, but for the place of `n` itself. */
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

/* What a node is made of: a value or a subtree for each of its 64 slots. */
struct plan {
	uint32_t value[64]; /* with a subtree: of the longest prefix above it */
	uint32_t root[64];
	uint64_t kids;
	struct node kid[64]; /* one after the other */
};

/* Spread radix subtree `i` over the slots of a node at depth d, shorter prefixes first. */
static void
plan_fill(const struct pt_radix *rx, struct plan *p, uint32_t i, unsigned int d)
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
		}
		if (n->len == d + PT_STRIDE) {
			if ((n->child[0] | n->child[1]) == 0)
				return;
			break;
		}
		if (n->child[0] && n->child[1])
			plan_fill(rx, p, n->child[0], d);
		i = n->child[1] ? n->child[1] : n->child[0];
	}
	if (i) {
		unsigned int s = pt_key_bits6(pt_rnode(rx, i)->key, d);

		p->root[s] = i;
		p->kids |= 1ull << s;
	}
}

/* Take an old node apart: what no changed prefix touches stays. */
static void
plan_open(const struct pt_view *v, struct plan *p, const struct node *old)
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
}

/* Value of the longest prefix covering (key, len) in subtree `root`, else `cover`. */
static uint32_t
value_above(const struct pt_radix *rx, uint32_t root, struct pt_key key, unsigned int len,
	    uint32_t cover)
{
	uint32_t i = pt_radix_match(rx, root, key, len);

	return i ? pt_rnode(rx, i)->value : cover;
}

/*
 * Plan anew the slots that changed prefixes touch, whole (the value above may differ) or
 * in part (somewhere inside), by a descent for each rather than a walk over all routes of
 * the node: in a full table a slot has a hundred.
 */
static void
plan_patch(const struct pt_radix *rx, struct plan *p, uint32_t root, unsigned int d,
	   uint32_t cover, const struct pt_dirty *dirty, uint32_t n, uint64_t *whole,
	   uint64_t *part)
{
	*whole = *part = 0;
	for (uint32_t i = 0; i < n; i++) {
		unsigned int s = pt_key_bits6(dirty[i].key, d);
		unsigned int len = dirty[i].len;
		bool inside = len > d + PT_STRIDE;
		struct pt_key key = dirty[i].key;
		uint64_t range = 1ull << s;
		uint32_t value;

		if (inside) {
			len = d + PT_STRIDE;
			key = pt_key_edge(key, len, false);
		} else {
			range = (~0ull >> (64 - (1u << (d + PT_STRIDE - len)))) << s;
		}
		/* Sorted: a shorter prefix has been here before those inside it. */
		if ((range & ~(*whole | *part)) == 0)
			continue;
		value = value_above(rx, root, key, len, cover);
		for (uint64_t m = range; m; m &= m - 1)
			p->value[__builtin_ctzll(m)] = value;
		p->kids &= ~range;
		plan_fill(rx, p, pt_radix_under(rx, root, key, len), d);
		if (inside)
			*part |= range;
		else
			*whole |= range;
	}
	*part &= ~*whole;
}

/* Bit s > 0: value[s] differs from value[s - 1]. */
static uint64_t
runs_of(const uint32_t *value)
{
	uint64_t same = 0;

	for (unsigned int s = 0; s < 64; s += 4) {
		__m128i a = _mm_loadu_si128((const void *)(value + s));
		__m128i before = s ? _mm_loadu_si128((const void *)(value + s - 1))
				   : _mm_shuffle_epi32(a, 0x90); /* 0 0 1 2 */
		__m128i eq = _mm_cmpeq_epi32(a, before);

		same |= (uint64_t)_mm_movemask_ps(_mm_castsi128_ps(eq)) << s;
	}
	return ~same;
}

/* Write the plan as a node, keeping the old blocks that hold the same. */
static int
plan_write(struct build *b, struct plan *p, uint64_t child, const struct node *old,
	   struct built *out)
{
	const struct pt_view *v = b->v;
	uint32_t rank = 0, last, n, i;
	bool keep;
	int rc;

	last = ~child ? p->value[__builtin_ctzll(~child)] : 0;
	for (uint64_t m = child; m && !v->wide; m &= m - 1)
		p->value[__builtin_ctzll(m)] = PT_CHILD | rank++;
	for (uint32_t s = 0; child && v->wide && s < 64; s++) {
		if (child >> s & 1)
			p->value[s] = last;
		else
			last = p->value[s];
	}
	out->node = (struct node){.run = runs_of(p->value), .child = child};
	out->uniform = (out->node.run | child) == 0;
	out->value = p->value[0];

	n = n_leaves(&out->node);
	keep = !out->uniform && old && old->run == out->node.run;
	i = keep ? old->leaf_base : 0;
	for (uint64_t m = out->node.run | 1; keep && m; m &= m - 1)
		keep = leaf_get(v, i++) == p->value[__builtin_ctzll(m)];
	if (keep) {
		out->node.leaf_base = old->leaf_base;
	} else if (old) {
		rc = block_retire(b, false, old->leaf_base, n_leaves(old));
		if (rc < 0)
			return rc;
	}
	if (!keep && !out->uniform) {
		rc = block_new(b, false, n, &i);
		if (rc < 0)
			return rc;
		out->node.leaf_base = i;
		for (uint64_t m = out->node.run | 1; m; m &= m - 1)
			leaf_put(v, i++, p->value[__builtin_ctzll(m)]);
	}

	n = (uint32_t)__builtin_popcountll(child);
	keep = child && old && old->child == child;
	for (i = 0; keep && i < n; i++) {
		struct node was = node_get(v, old->child_base + i);

		keep = node_same(&was, &p->kid[i]);
	}
	if (keep) {
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

/*
 * Build the node at depth d over radix subtree `root`. `old` is what readers see there
 * (NULL: no node). n_dirty = 0 means that all of it may have changed; else `dirty`, sorted,
 * has the changed prefixes, and `old` is there. 0, -ENOMEM, -ENOSPC (a pool is full).
 */
static int
node_build(struct build *b, const struct node *old, unsigned int d, uint32_t root,
	   uint32_t cover, const struct pt_dirty *dirty, uint32_t n_dirty,
	   struct built *out)
{
	uint64_t whole = ~0ull, part = 0, child = 0;
	uint32_t n_kids = 0, at = 0, end;
	struct plan p;
	int rc;

	if (n_dirty) {
		plan_open(b->v, &p, old);
		plan_patch(&b->pt->radix, &p, root, d, cover, dirty, n_dirty, &whole,
			   &part);
	} else {
		p.kids = 0;
		for (unsigned int s = 0; s < 64; s++)
			p.value[s] = cover;
		plan_fill(&b->pt->radix, &p, root, d);
	}

	for (uint64_t m = p.kids; m; m &= m - 1) {
		unsigned int s = (unsigned int)__builtin_ctzll(m);
		bool had = old && (old->child >> s & 1);
		struct node was;
		struct built r;

		if (had)
			was = node_child(b->v, old, s);
		if ((whole >> s & 1) || ((part >> s & 1) && !had)) {
			rc = node_build(b, had ? &was : NULL, d + PT_STRIDE, p.root[s],
					p.value[s], NULL, 0, &r);
			if (rc < 0)
				return rc;
		} else if (part >> s & 1) {
			while (pt_key_bits6(dirty[at].key, d) != s)
				at++;
			for (end = at; end < n_dirty; end++)
				if (pt_key_bits6(dirty[end].key, d) != s)
					break;
			rc = node_build(b, &was, d + PT_STRIDE, p.root[s], p.value[s],
					dirty + at, end - at, &r);
			if (rc < 0)
				return rc;
		} else {
			r = (struct built){.node = was};
		}
		if (r.uniform) {
			p.value[s] = r.value;
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

/* One aligned vector store: no reader can meet half of an entry. */
static void
fused_publish(struct pt_fused *slot, struct pt_fused f)
{
	__m128i x = _mm_set_epi64x((int64_t)((uint64_t)f.child_base << 32 | f.leaf_base),
				   (int64_t)f.run);

	/* Release: x86 keeps stores in order, the clobber keeps the compiler to it. */
	__asm__ volatile("movdqa %1, %0" : "=m"(*(__m128i *)slot) : "x"(x) : "memory");
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
		old = fused_open(b->v, &was);
	if (was.run || root) {
		rc = node_build(b, was.run ? &old : NULL, PT4_BITS, root, cover, dirty,
				was.run ? n_dirty : 0, &r);
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
		rc = node_build(b, node ? &old : NULL, bits, root, cover, dirty,
				node ? n_dirty : 0, &r);
		if (rc < 0)
			return rc;
	}
	if (r.uniform) {
		now = r.value;
		if (now == was)
			return 0;
	} else {
		if (node && node_same(&old, &r.node))
			return 0;
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
	/* Release: a reader that meets the node also sees all below it. */
	atomic_store_explicit(&b->v->entry[slot], now, memory_order_release);
	return 0;
}

/*
 * Bring one slot of view `v` up to the truth. `uncovered` is the value to write where no
 * prefix matches, normally 0. `batch` takes what was replaced; a view that nobody reads
 * and that is still empty needs none. 0, -ENOMEM or -ENOSPC with nothing changed.
 */
int
pt_slot_rebuild(struct poptrie *pt, struct pt_view *v, struct pt_batch *batch,
		uint32_t slot, const struct pt_dirty *dirty, uint32_t n_dirty,
		uint32_t uncovered)
{
	struct build b = {.pt = pt, .v = v, .batch = batch};
	size_t mark = batch ? batch->old.n : 0;
	uint32_t cover = pt->slot[slot].cover ? pt->slot[slot].cover : uncovered;
	unsigned int bits = PT6_OTHER;
	int rc;

	if (v->wide) {
		if (!pt->ip6)
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
	pt->fresh.n = 0;
	pt->slots_rebuilt++;
	return rc;
}
