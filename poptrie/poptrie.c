/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Create and destroy a table, commit changes, fill statistics. Writer thread only. A commit
 * must never let a reader see a value that neither the table before the commit nor the
 * table after it has; commit_slots() explains how this holds for the default route.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "poptrie/arch.h"

static enum pt_layout
layout_for_cpu(enum poptrie_family family)
{
#ifndef __SANITIZE_THREAD__
	if (family == POPTRIE_IP4 && pt_has_16_octets())
		return PT_FUSED;
#endif
	return PT_WIDE;
}

int
poptrie_create(struct poptrie **out, const struct poptrie_conf *conf)
{
	return pt_create(out, conf, layout_for_cpu(conf->family), pt_isa_best());
}

static size_t
bitmap_bytes(const struct poptrie *pt)
{
	return (pt->n_slots + 63) / 64 * sizeof(uint64_t);
}

int
pt_create(struct poptrie **out, const struct poptrie_conf *conf, enum pt_layout layout,
	  enum pt_isa isa)
{
	struct pt_mem mem = {.alloc = conf->alloc,
			     .free = conf->free,
			     .ctx = conf->ctx,
			     .nodes = conf->nodes};
	struct poptrie *pt;
	struct pt_view *v;

	if (conf->family != POPTRIE_IP4 && conf->family != POPTRIE_IP6)
		return -EINVAL;
	if (!conf->alloc != !conf->free)
		return -EINVAL;
	pt = pt_mem_get(&mem, sizeof(*pt), 64, 0);
	if (!pt)
		return -ENOMEM;
	pt->mem = mem;
	pt->retire = conf->retire;
	pt->ip6 = conf->family == POPTRIE_IP6;
	pt->wide = pt->ip6 || conf->small || layout == PT_WIDE;
	pt->shape = conf->small ? PT_SHAPE_SMALL : pt->ip6 ? PT_SHAPE6 : PT_SHAPE4;
	pt->isa = isa;
	pt->min_visits = PT_VISITS;
	pt_ranges_close(pt);
	pt->bits_max = pt->ip6 ? 128 : 32;
	pt->n_slots = pt_slot_count(pt->shape);
	pt->max_dirty = conf->small ? PT_DIRTY_SMALL : PT_DIRTY;
	pt_radix_init(&pt->radix, &pt->mem, conf->small ? PT_MEM_SPARSE : PT_MEM_HOT);
	pt->slot = pt_mem_get(&mem, pt->n_slots * sizeof(*pt->slot), 64, 0);
	pt->used = pt_mem_get(&mem, bitmap_bytes(pt), 64, 0);
	pt->full = pt_mem_get(&mem, bitmap_bytes(pt), 64, 0);
	pt->whole = pt_mem_get(&mem, bitmap_bytes(pt), 64, 0);
	pt->dirty = pt_mem_get(&mem, pt->max_dirty * sizeof(*pt->dirty), 64, 0);
	if (pt->slot && pt->used && pt->full && pt->whole && pt->dirty) {
		v = pt_view_new(pt, false, 0, 0);
		if (v) {
			/*
			 * Release: a reader that sees the view also sees its empty table.
			 */
			atomic_store_explicit(&pt->view, v, memory_order_release);
			*out = pt;
			return 0;
		}
	}
	poptrie_destroy(pt);
	return -ENOMEM;
}

void
poptrie_destroy(struct poptrie *pt)
{
	struct pt_mem mem;
	struct pt_batch *b;

	if (!pt)
		return;
	mem = pt->mem;
	if (pt_view(pt)) {
		assert(pt_view(pt)->refs == 1);
		pt_view_put(pt, pt_view(pt));
	}
	while ((b = pt->idle) != NULL) {
		pt->idle = b->next;
		pt_batch_free(pt, b);
	}
	pt_radix_fini(&pt->radix);
	pt_mem_put(&mem, pt->fresh.rec, pt->fresh.cap * sizeof(uint64_t));
	pt_mem_put(&mem, pt->slot, pt->n_slots * sizeof(*pt->slot));
	pt_mem_put(&mem, pt->used, bitmap_bytes(pt));
	pt_mem_put(&mem, pt->full, bitmap_bytes(pt));
	pt_mem_put(&mem, pt->whole, bitmap_bytes(pt));
	pt_mem_put(&mem, pt->dirty, pt->max_dirty * sizeof(*pt->dirty));
	pt_mem_put(&mem, pt, sizeof(*pt));
}

static int
dirty_order(const void *a, const void *b)
{
	const struct pt_dirty *x = a, *y = b;

	if (pt_key_before(x->key, x->len, y->key, y->len))
		return -1;
	return pt_key_before(y->key, y->len, x->key, x->len);
}

/*
 * Remove the prefixes of slots in `full` from the list of changed prefixes, mark these
 * slots to be rebuilt, and sort the rest of the list.
 */
static void
dirty_settle(struct poptrie *pt)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < pt->n_dirty; i++) {
		uint32_t s = pt->dirty[i].slot;

		if (pt->full[s / 64] >> s % 64 & 1)
			pt->whole[s / 64] |= 1ull << s % 64;
		else
			pt->dirty[n++] = pt->dirty[i];
	}
	pt->n_dirty = n;
	if (n > 1)
		qsort(pt->dirty, n, sizeof(*pt->dirty), dirty_order);
}

/* Clear the marks when all is published. */
static void
dirty_clear(struct poptrie *pt)
{
	if (pt->full_lo < pt->full_hi) {
		size_t bytes = (pt->full_hi - pt->full_lo) * sizeof(*pt->full);

		memset(pt->full + pt->full_lo, 0, bytes);
		memset(pt->whole + pt->full_lo, 0, bytes);
	}
	pt->full_lo = pt->full_hi = 0;
	pt->n_dirty = 0;
}

/*
 * Publish slot by slot. Where no prefix matches, leaves have the value 0 and readers use
 * the default instead. When the default changes together with prefixes, no order of the
 * stores is right for an address that loses its prefix in the same commit. Therefore the
 * touched slots get the new default written into their leaves, and then the default is
 * stored. These slots stay marked, and the next commit writes 0 there again. (A withdrawn
 * default cannot be written into leaves; the caller rebuilds the view then.)
 */
static int
commit_slots(struct poptrie *pt, struct pt_view *v, struct pt_batch *batch,
	     uint32_t uncovered)
{
	uint32_t lo = pt->full_lo, hi = pt->full_hi, i = 0, end, s;
	int rc = 0;

	for (uint32_t w = lo; w < hi; w++) {
		for (uint64_t m = pt->full[w]; m; m &= m - 1) {
			s = w * 64 + (uint32_t)__builtin_ctzll(m);
			if ((pt->whole[w] & m & -m) ||
			    !pt_slot_set_cover(pt, v, s, uncovered))
				rc = pt_slot_rebuild(pt, v, batch, s, NULL, 0, uncovered);
			if (rc < 0)
				goto fail;
			pt->whole[w] &= ~(m & -m);
			if (uncovered == 0 || pt->slot[s].cover)
				pt->full[w] &= ~(m & -m);
		}
		if (uncovered == 0)
			pt->full_lo = w + 1;
	}
	for (; i < pt->n_dirty; i = end) {
		s = pt->dirty[i].slot;
		for (end = i + 1; end < pt->n_dirty && pt->dirty[end].slot == s; end++)
			;
		rc = pt_slot_rebuild(pt, v, batch, s, pt->dirty + i, end - i, uncovered);
		if (rc < 0)
			goto fail;
		/*
		 * Rebuild the slot in the next commit. Changed leaves have the new default,
		 * but other leaves without a prefix still have 0, so the slot has more runs
		 * than it needs.
		 */
		if (uncovered && pt->slot[s].cover == 0)
			pt_mark_full(pt, s);
	}
	pt->n_dirty = 0;
	return 0;
fail:
	for (; i < pt->n_dirty; i++)
		pt_mark_full(pt, pt->dirty[i].slot);
	pt->n_dirty = 0;
	return rc;
}

int
poptrie_commit(struct poptrie *pt)
{
	struct pt_view *v = pt_view(pt);
	uint64_t dflt = atomic_load_explicit(&v->dflt, memory_order_relaxed);
	bool swing = (uint32_t)dflt != pt->dflt, slots;
	struct pt_batch *batch;
	int rc = -ENOSPC;

	slots = pt->n_dirty || pt->full_lo < pt->full_hi;
	if (!slots && !swing)
		return 0;
	batch = pt_batch_get(pt, v);
	if (!batch)
		return -ENOMEM;
	pt_ranges_close(pt);
	dirty_settle(pt);
	if ((pt->want32 && !v->leaf32) || (slots && swing && !pt->dflt && pt->reader_hit))
		;
	else if (slots)
		rc = commit_slots(pt, v, batch, swing && pt->reader_hit ? pt->dflt : 0);
	else
		rc = 0;
	if (rc == -ENOSPC) {
		rc = pt_view_rebuild(pt, batch, v->leaf32 || pt->want32);
		if (rc == 0)
			dirty_clear(pt);
	} else if (rc == 0 && swing) {
		dflt = ((dflt >> 32) + 1) << 32 | pt->dflt;
		/*
		 * Release: a reader that sees the new default sees the slots published
		 * before it.
		 */
		atomic_store_explicit(&v->dflt, dflt, memory_order_release);
	}
	if (rc == 0 && !batch->gone)
		pt_defragment(pt, batch);
	if (rc == 0)
		pt_ranges_open(pt);
	pt->reader_hit = rc < 0 || pt->routes > 0;
	pt->commits++;
	pt_batch_end(pt, batch);
	return rc;
}

/*
 * Return the memory that only the writer reads: the radix trees, staged changes, its data
 * about pools and nodes.
 */
static size_t
writer_bytes(const struct poptrie *pt, const struct pt_view *v)
{
	size_t bytes = (pt->radix.top - 1) * sizeof(struct pt_rnode) +
		       pt->n_slots * sizeof(*pt->slot) + 3 * bitmap_bytes(pt) +
		       pt->max_dirty * sizeof(*pt->dirty) +
		       (v->nodes.top + v->leaves.top) * sizeof(struct pt_page);

	if (!v->wide)
		bytes += (pt->n_slots + (size_t)v->nodes.top * v->nodes.page_elems) *
			 sizeof(*v->bare);
	return bytes;
}

void
poptrie_stats(const struct poptrie *pt, struct poptrie_stats *st)
{
	const struct pt_view *v = pt_view(pt);

	memset(st, 0, sizeof(*st));
	st->routes = pt->routes;
	st->nodes = v->nodes.live - pt->retired_nodes;
	st->leaves = v->leaves.live - pt->retired_leaves;
	st->direct_bytes = v->direct_bytes;
	st->node_bytes = pt_pool_bytes(&v->nodes);
	st->leaf_bytes = pt_pool_bytes(&v->leaves);
	st->free_bytes = pt_pool_bytes(&v->nodes) + pt_pool_bytes(&v->leaves) -
			 (size_t)v->nodes.live * v->nodes.elem_bytes -
			 (size_t)v->leaves.live * v->leaves.elem_bytes;
	if (!v->wide)
		st->free_bytes -= (size_t)(PT_VALUE16 + 1) * v->leaves.elem_bytes;
	st->retired_bytes = pt->retired_bytes;
	st->radix_bytes = writer_bytes(pt, v);
	st->commits = pt->commits;
	st->slots_rebuilt = pt->slots_rebuilt;
	memcpy(st->depth, pt->depth, sizeof(st->depth));
	st->frag_bytes = pt_pool_frag(&v->nodes) + pt_pool_frag(&v->leaves);
}
