/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Views and batches: the memory that readers see as a whole, and the blocks that a commit
 * replaced. A view is built again (build.c) when a pool is full, when values need wider
 * leaves, or when a commit cannot be published slot by slot; one pointer store directs
 * readers to it. Writer thread only. The code must never free blocks before
 * poptrie_reclaim() gives them back.
 */
#include <errno.h>
#include <string.h>
#include "poptrie/impl.h"

#define LEAF_PAGE 1024u
#define NODE_PAGE 256u
/*
 * With mmap, unused capacity costs nothing. If the caller has its own allocator, the pools
 * begin small.
 */
#define LEAF_ROOM  (1u << 24)
#define NODE_ROOM  (1u << 20)
#define LEAF_SMALL (1u << 14)
#define NODE_SMALL (1u << 11)
/* Pools of small tables; a page has room for the largest block. */
#define SMALL_PAGE   64u
#define SMALL_LEAVES (1u << 8)
#define SMALL_NODES  SMALL_PAGE

/*
 * Return the number of leaves whose value is their index: uniform fused entries point to
 * them.
 */
static uint32_t
identity_leaves(const struct poptrie *pt)
{
	return pt->wide ? 0 : PT_VALUE16 + 1;
}

static size_t
bare_bytes(const struct pt_view *v)
{
	return (size_t)v->nodes.n_pages * NODE_PAGE * sizeof(*v->bare);
}

static void
view_free(struct poptrie *pt, struct pt_view *v)
{
	pt_mem_put(&pt->mem, v->entry, v->direct_bytes);
	pt_mem_put(&pt->mem, v->bare_slot, pt->n_slots * sizeof(*v->bare_slot));
	pt_mem_put(&pt->mem, v->bare, bare_bytes(v));
	pt_pool_fini(&v->leaves, &pt->mem);
	pt_pool_fini(&v->nodes, &pt->mem);
	pt_mem_put(&pt->mem, v, sizeof(*v));
}

/*
 * Create an empty view. A capacity of 0 stands for a default. Returns NULL if out of
 * memory.
 */
struct pt_view *
pt_view_new(struct poptrie *pt, bool leaf32, uint32_t leaf_cap, uint32_t node_cap)
{
	struct pt_view *v = pt_mem_get(&pt->mem, sizeof(*v), 64, 0);
	uint32_t identity = identity_leaves(pt);
	size_t entry = pt->wide ? sizeof(uint32_t) : sizeof(struct pt_fused);
	size_t node = pt->wide ? sizeof(struct pt_wide) : sizeof(struct pt_fused);
	bool small = pt->shape == PT_SHAPE_SMALL;

	if (!v)
		return NULL;
	if (leaf_cap == 0)
		leaf_cap = small ? SMALL_LEAVES
				 : identity + (pt->mem.alloc ? LEAF_SMALL : LEAF_ROOM);
	if (node_cap == 0)
		node_cap = small ? SMALL_NODES : pt->mem.alloc ? NODE_SMALL : NODE_ROOM;
	v->wide = pt->wide;
	v->small = small;
	v->leaf32 = leaf32;
	v->refs = 1;
	v->direct_bytes = pt->n_slots * entry;
	v->entry = pt_mem_get(&pt->mem, v->direct_bytes, 64, PT_MEM_HOT);
	if (!v->entry ||
	    pt_pool_init(&v->leaves, &pt->mem, leaf32 ? 4 : 2,
			 small ? SMALL_PAGE : LEAF_PAGE, leaf_cap, identity) < 0 ||
	    pt_pool_init(&v->nodes, &pt->mem, (uint32_t)node,
			 small ? SMALL_PAGE : NODE_PAGE, node_cap, 0) < 0) {
		view_free(pt, v);
		return NULL;
	}
	if (!v->wide) {
		v->bare_slot =
			pt_mem_get(&pt->mem, pt->n_slots * sizeof(*v->bare_slot), 64, 0);
		v->bare = pt_mem_get(&pt->mem, bare_bytes(v), 64, 0);
		if (!v->bare_slot || !v->bare) {
			view_free(pt, v);
			return NULL;
		}
	}
	v->leaf = v->leaves.mem;
	v->node = v->nodes.mem;
	pt_bulk_choose(v, pt->ip6, pt->isa);
	for (uint32_t i = 0; i < identity; i++) {
		if (leaf32)
			((uint32_t *)v->leaves.mem)[i] = i;
		else
			((uint16_t *)v->leaves.mem)[i] = (uint16_t)i;
	}
	return v;
}

void
pt_view_put(struct poptrie *pt, struct pt_view *v)
{
	if (--v->refs == 0)
		view_free(pt, v);
}

int
pt_blocks_push(struct poptrie *pt, struct pt_blocks *b, bool node, uint32_t idx, uint32_t n)
{
	if (b->n == b->cap) {
		size_t cap = b->cap ? b->cap * 2 : 32;
		uint64_t *rec = pt_mem_get(&pt->mem, cap * sizeof(*rec), 8, 0);

		if (!rec)
			return -ENOMEM;
		if (b->rec)
			memcpy(rec, b->rec, b->n * sizeof(*rec));
		pt_mem_put(&pt->mem, b->rec, b->cap * sizeof(*rec));
		b->rec = rec;
		b->cap = cap;
	}
	b->rec[b->n++] = (uint64_t)node << 63 | (uint64_t)n << 32 | idx;
	return 0;
}

/* Free the blocks in their pools. */
void
pt_blocks_free(struct pt_view *v, struct pt_blocks *b)
{
	for (size_t i = 0; i < b->n; i++) {
		bool node = b->rec[i] >> 63;
		uint32_t n = (b->rec[i] >> 32) & 0x7fffffff;

		pt_pool_free(node ? &v->nodes : &v->leaves, (uint32_t)b->rec[i], n);
	}
	b->n = 0;
}

/*
 * Return a batch for one commit; NULL: out of memory. Some batches are cached for reuse. If
 * all batches were cached, each would at some time serve a large commit and keep the room
 * of its list: after a flood of commits between two grace periods, tens of MiB would stay
 * allocated.
 */
struct pt_batch *
pt_batch_get(struct poptrie *pt, struct pt_view *of)
{
	struct pt_batch *batch = pt->idle;

	if (batch) {
		pt->idle = batch->next;
		pt->n_idle--;
	} else {
		batch = pt_mem_get(&pt->mem, sizeof(*batch), _Alignof(struct pt_batch), 0);
	}
	if (!batch)
		return NULL;
	batch->of = of;
	batch->gone = NULL;
	batch->next = NULL;
	batch->bytes = 0;
	of->refs++;
	return batch;
}

static void
batch_count(struct poptrie *pt, struct pt_batch *batch, int sign)
{
	uint64_t n[2] = {0, 0};

	for (size_t i = 0; i < batch->old.n; i++)
		n[batch->old.rec[i] >> 63] += (batch->old.rec[i] >> 32) & 0x7fffffff;
	if (sign > 0)
		batch->bytes = n[0] * batch->of->leaves.elem_bytes +
			       n[1] * batch->of->nodes.elem_bytes;
	if (sign > 0 && batch->gone)
		batch->bytes += batch->gone->direct_bytes +
				pt_pool_bytes(&batch->gone->leaves) +
				pt_pool_bytes(&batch->gone->nodes);
	pt->retired_bytes += sign > 0 ? batch->bytes : -batch->bytes;
	if (batch->of == pt_view(pt)) {
		pt->retired_leaves += sign > 0 ? n[0] : -n[0];
		pt->retired_nodes += sign > 0 ? n[1] : -n[1];
	}
}

void
pt_batch_free(struct poptrie *pt, struct pt_batch *batch)
{
	pt_mem_put(&pt->mem, batch->old.rec, batch->old.cap * sizeof(*batch->old.rec));
	pt_mem_put(&pt->mem, batch, sizeof(*batch));
}

/* Hand the batch to the caller's hook, or free its blocks at once when there is no hook. */
void
pt_batch_end(struct poptrie *pt, struct pt_batch *batch)
{
	if (batch->gone)
		pt->retired_leaves = pt->retired_nodes = 0;
	batch_count(pt, batch, 1);
	if (pt->retire && (batch->old.n || batch->gone))
		pt->retire(pt->mem.ctx, pt, &batch->pub);
	else
		poptrie_reclaim(pt, &batch->pub);
}

void
poptrie_reclaim(struct poptrie *pt, struct poptrie_retired *r)
{
	struct pt_batch *batch = (struct pt_batch *)r;

	batch_count(pt, batch, -1);
	pt_blocks_free(batch->of, &batch->old);
	if (batch->gone)
		pt_view_put(pt, batch->gone);
	pt_view_put(pt, batch->of);
	if (pt->n_idle == PT_IDLE || batch->old.cap > PT_IDLE_CAP) {
		pt_batch_free(pt, batch);
		return;
	}
	pt->n_idle++;
	memset(&batch->pub, 0, sizeof(batch->pub));
	batch->next = pt->idle;
	pt->idle = batch;
}
