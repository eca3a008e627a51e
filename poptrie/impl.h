/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Internals of poptrie/: keys, the two node layouts, the view that readers see, the table.
 * Users of the library do not include this file; the unit tests include it to force a
 * layout.
 *
 * The direct table divides the staged routes. Each direct slot owns a small radix tree of
 * the prefixes inside it, which are as long as the slot or longer. One more tree (`top`)
 * holds the shorter prefixes. The zero-length prefix is in no tree: it is a plain value,
 * `dflt`. Therefore an update descends only a few nodes.
 */
#ifndef POPTRIE_IMPL_H
#define POPTRIE_IMPL_H

#include <assert.h>
#include <stdatomic.h>
#include "poptrie/poptrie.h"
#include "poptrie/pool.h"
#include "poptrie/radix.h"

#define PT_STRIDE      6
#define PT4_BITS       18 /* direct bits of IPv4 */
#define PT6_BITS       24 /* direct bits inside 2000::/3, its three leading bits included */
#define PT6_OTHER      12 /* direct bits of the rest of the IPv6 space */
#define PT_SMALL_BITS  8  /* direct bits of a small table, IPv4 or IPv6 */
#define PT_RANGES      64 /* most ranges of a small IPv4 table, see struct poptrie */
#define PT_DIRTY       4096 /* most listed prefixes; with more, whole slots are rebuilt */
#define PT_DIRTY_SMALL 64   /* PT_DIRTY of a small table */
#define PT_CHILD       0x80000000u /* in 32-bit words: a child or node, not a value */
#define PT_VALUE16     0x7fffu     /* the largest value of a 16-bit leaf */
/*
 * A walk against holes begins when the partly used pages of a pool have this many free
 * octets, plus half of the octets that the pool has in use.
 */
#define PT_FRAG     (1u << 19)
#define PT_VISITS   256u  /* default of min_visits: some 10 us */
#define PT_IDLE     4u    /* most batches that are cached for reuse */
#define PT_IDLE_CAP 4096u /* most room in the list of a cached batch, in entries: 32 KiB */
#define PT_LEVELS   21    /* most levels of nodes below a direct slot */

/* The division of the address space into direct slots. */
enum pt_shape { PT_SHAPE4, PT_SHAPE6, PT_SHAPE_SMALL };

enum pt_layout {
	/*
	 * The direct entry is the first-level node: 16 octets, replaced by one aligned
	 * 16-byte store. For IPv4 on CPUs where such accesses are atomic: on x86-64 all
	 * CPUs with AVX, on arm64 those with FEAT_LSE2.
	 */
	PT_FUSED,
	/*
	 * The layout of the paper: a 32-bit direct entry is a value or the index of a node.
	 * A node has a second bitmap (`child`) for its children, so each level costs one
	 * load. For IPv6, because its tries are deep; for IPv4 on old CPUs and under TSan,
	 * which cannot see vector accesses; for small tables, because a direct table of
	 * 16-octet entries would be larger than the rest of the table.
	 */
	PT_WIDE,
};

/*
 * Bit v > 0 of `run` starts a new run of equal leaves at slot v. Slot 0 needs no bit, so a
 * zeroed entry means "no route". A slot with a child is a run of its own: its leaf has the
 * top bit set, and the other bits are the number of the child, counted from child_base. The
 * first 32768 leaves are the identity leaves: leaf i has the value i. So an entry with one
 * value for all its slots is {0, value, 0}, if the value has at most 15 bits.
 */
struct pt_fused {
	uint64_t run;
	uint32_t leaf_base;
	uint32_t child_base;
} __attribute__((aligned(16)));
static_assert(sizeof(struct pt_fused) == 16, "one aligned vector load and store");

/*
 * Slots with a child (bit in `child`) do not end a run of leaves. To descend, a lookup
 * reads the first 16 octets only; to read the leaf at the end, it reads the 16 octets from
 * child_base on.
 */
struct pt_wide {
	uint64_t child;
	uint32_t child_base;
	uint32_t leaf_base;
	uint64_t run;
	uint64_t bare; /* read by the writer only, see struct node */
};
static_assert(sizeof(struct pt_wide) == 32, "two nodes to a cache line");

enum pt_isa {
	PT_SCALAR = POPTRIE_SCALAR,
	PT_AVX2 = POPTRIE_AVX2,
	PT_AVX512 = POPTRIE_AVX512,
};

/* The progress of a walk over all nodes that moves blocks out of leaving pages. */
struct pt_walk {
	bool on;                 /* a walk is under way */
	uint32_t slot;           /* the direct slot in which it continues */
	uint32_t n_path;         /* used entries of path; 0: continue at the slot's top */
	uint8_t path[PT_LEVELS]; /* the next node, by its slot in the node of each level */
	size_t futile;           /* octets of holes below which a walk would gain nothing */
};

/*
 * Sixteen ranges of addresses, ascending, each with its last address and its value. Unused
 * entries at the end have the last address UINT32_MAX. A list of up to sixteen ranges takes
 * two cache lines.
 */
struct pt_ranges {
	uint32_t last[16] __attribute__((aligned(64)));
	uint32_t value[16];
};

/*
 * The memory that readers follow. One pointer leads to all of it, so that the writer can
 * change the leaf width and replace the pools by a store to that pointer.
 */
struct pt_view {
	union {
		struct pt_fused *fused;  /* W:writer R:any  entries, 16-byte stores */
		_Atomic uint32_t *entry; /* W:writer R:any  release stores */
	};
	const void *node; /* pt_fused or pt_wide; W:writer before publication */
	const void *leaf; /* uint16_t or uint32_t; W:writer before publication */
	/* The bulk variant for layout, leaf width and CPU; W:writer before publication */
	union {
		void (*bulk4)(const struct pt_view *v, const uint32_t *addr,
			      uint32_t *value, unsigned int n);
		void (*bulk6)(const struct pt_view *v, const uint8_t *const *addr,
			      uint32_t *value, unsigned int n);
	};
	bool wide;   /* W:writer once */
	bool small;  /* W:writer once  PT_SMALL_BITS direct bits; `wide` is true as well */
	bool leaf32; /* W:writer once */
	/*
	 * The value of the zero-length prefix in the low half, the number of its changes in
	 * the high half. A lookup that ends at a leaf of value 0 returns this value, so a
	 * change of the default route is one store, not 2^18. A reader that finds `dflt`
	 * changed after the lookup looks up again.                   W:writer R:any
	 */
	_Atomic uint64_t dflt;

	/* For the writer only from here on. */
	struct pt_pool nodes, leaves;
	uint64_t *bare;      /* fused: `bare` of the nodes in the pool, see struct node */
	uint64_t *bare_slot; /* fused: `bare` of the nodes in the direct table */
	size_t direct_bytes;
	struct pt_walk walk; /* of pt_defragment() */
	unsigned int refs;   /* 1 while current or retired, and 1 for each batch */
};

/* A changed prefix, listed until the commit. */
struct pt_dirty {
	struct pt_key key;
	uint32_t slot;
	uint32_t len;
};

struct pt_slot {
	uint32_t root;  /* radix tree of the prefixes in this slot */
	uint32_t cover; /* value of the longest prefix above the slot, default excluded */
};

/*
 * Blocks of the pools, each packed in a word. The top bit is set for nodes and clear for
 * leaves; 31 bits of size (in nodes or leaves) and 32 bits of index follow.
 */
struct pt_blocks {
	uint64_t *rec;
	size_t n, cap;
};

struct pt_batch {
	struct poptrie_retired pub;
	struct pt_view *of;   /* the view that owns the blocks; the batch has a reference */
	struct pt_view *gone; /* a whole view that was replaced, or NULL */
	struct pt_blocks old;
	size_t bytes;
	struct pt_batch *next; /* in the list of cached batches */
};

struct poptrie {
	_Atomic(struct pt_view *) view; /* W:writer R:any */
	/*
	 * A copy of a small IPv4 table as ranges of addresses, while they are few: a lookup
	 * compares the key with all their ends, and reads neither view nor node. The
	 * default route is in it. Readers read the turn before and after the list. When the
	 * turn is odd or has changed, they use the nodes. The list is here and not behind
	 * another pointer, because a lookup then knows the addresses of all cache lines at
	 * once, which helps if there are hundreds of tables.
	 */
	_Atomic uint32_t ranges_turn; /* W:writer R:any  odd: do not read the list */
	uint32_t n_ranges;            /* W:writer R:any  1 to PT_RANGES */
	enum pt_isa isa;              /* W:writer once */
	struct pt_ranges ranges[PT_RANGES / 16]; /* W:writer R:any */

	/* For the writer only from here on. */
	struct pt_mem mem __attribute__((aligned(64)));
	void (*retire)(void *ctx, struct poptrie *pt, struct poptrie_retired *r);
	bool ip6;
	bool wide;
	enum pt_shape shape;
	bool want32;     /* a value that needs 32-bit leaves was staged; never reset */
	bool reader_hit; /* last commit left routes or failed: readers may find a route */
	unsigned int bits_max; /* 32 or 128 */
	uint32_t n_slots;
	uint32_t dflt; /* the staged default route */
	struct pt_radix radix;
	uint32_t top; /* radix tree of the prefixes shorter than a slot */
	struct pt_slot *slot;
	uint64_t *used;  /* a bit for each slot with a root, to find the next such slot */
	uint64_t *full;  /* a bit for each slot to visit, whatever `dirty` lists in it */
	uint64_t *whole; /* slots of `full` to rebuild; the others have only a new cover */
	uint32_t full_lo, full_hi; /* words of `full` that may have bits: lo <= w < hi */
	struct pt_dirty *dirty;
	uint32_t n_dirty, max_dirty;
	struct pt_blocks fresh; /* new blocks of the slot that is being rebuilt, for undo */
	struct pt_batch *idle;
	unsigned int n_idle;
	uint64_t routes, commits, slots_rebuilt;
	uint64_t depth[POPTRIE_DEPTHS];
	size_t retired_bytes;
	uint64_t retired_nodes, retired_leaves;
	uint32_t min_visits; /* visits of nodes that each commit may make to close holes */
};

/* Return the slot of the key's address. Slots are in address order over the whole space. */
static inline uint32_t
pt_slot_of(enum pt_shape shape, struct pt_key k)
{
	const uint32_t low = 1u << (PT6_OTHER - 3);

	if (shape == PT_SHAPE4)
		return k.hi >> (64 - PT4_BITS);
	if (shape == PT_SHAPE_SMALL)
		return k.hi >> (64 - PT_SMALL_BITS);
	switch (k.hi >> 61) {
	case 0:
		return k.hi >> (64 - PT6_OTHER);
	case 1:
		return low + ((k.hi << 3) >> (67 - PT6_BITS));
	default:
		return low + (1u << (PT6_BITS - 3)) + (k.hi >> (64 - PT6_OTHER)) - 2 * low;
	}
}

static inline unsigned int
pt_slot_bits(enum pt_shape shape, struct pt_key k)
{
	if (shape == PT_SHAPE4)
		return PT4_BITS;
	if (shape == PT_SHAPE_SMALL)
		return PT_SMALL_BITS;
	return k.hi >> 61 == 1 ? PT6_BITS : PT6_OTHER;
}

static inline uint32_t
pt_slot_count(enum pt_shape shape)
{
	if (shape == PT_SHAPE4)
		return 1u << PT4_BITS;
	if (shape == PT_SHAPE_SMALL)
		return 1u << PT_SMALL_BITS;
	return (1u << (PT6_BITS - 3)) + (7u << (PT6_OTHER - 3));
}

/* build.c */
int pt_slot_rebuild(struct poptrie *pt, struct pt_view *v, struct pt_batch *batch,
		    uint32_t slot, const struct pt_dirty *dirty, uint32_t n_dirty,
		    uint32_t uncovered);
bool pt_slot_set_cover(const struct poptrie *pt, struct pt_view *v, uint32_t slot,
		       uint32_t uncovered);
int pt_view_rebuild(struct poptrie *pt, struct pt_batch *batch, bool leaf32);

/* defragment.c */
void pt_defragment(struct poptrie *pt, struct pt_batch *batch);
bool pt_walk_begin(struct pt_view *v, uint32_t gain);

/* ranges.c */
void pt_ranges_close(struct poptrie *pt);
void pt_ranges_open(struct poptrie *pt);
/* ranges_avx2.c, ranges_avx512.c */
bool pt_ranges_bulk_avx2(const struct poptrie *pt, const uint32_t *addr, uint32_t *value,
			 unsigned int n);
void pt_each4_avx2(const struct poptrie *const *pt, const uint32_t *addr, uint32_t *value,
		   unsigned int n);
bool pt_ranges_bulk_avx512(const struct poptrie *pt, const uint32_t *addr, uint32_t *value,
			   unsigned int n);
void pt_each4_avx512(const struct poptrie *const *pt, const uint32_t *addr, uint32_t *value,
		     unsigned int n);

/* view.c */
struct pt_view *pt_view_new(struct poptrie *pt, bool leaf32, uint32_t leaf_cap,
			    uint32_t node_cap);
void pt_view_put(struct poptrie *pt, struct pt_view *v);
struct pt_batch *pt_batch_get(struct poptrie *pt, struct pt_view *of);
void pt_batch_free(struct poptrie *pt, struct pt_batch *batch);
void pt_batch_end(struct poptrie *pt, struct pt_batch *batch);
int pt_blocks_push(struct poptrie *pt, struct pt_blocks *b, bool node, uint32_t idx,
		   uint32_t n);
void pt_blocks_free(struct pt_view *v, struct pt_blocks *b);

/* stage.c */
void pt_mark_cover(struct poptrie *pt, uint32_t slot);
void pt_mark_full(struct poptrie *pt, uint32_t slot);

/* poptrie.c: create with a given layout and variant; poptrie_create() chooses by CPU. */
int pt_create(struct poptrie **out, const struct poptrie_conf *conf, enum pt_layout layout,
	      enum pt_isa isa);

/* lookup.c, lookup_avx2.c, lookup_avx512.c */
enum pt_isa pt_isa_best(void);
void pt_bulk_choose(struct pt_view *v, bool ip6, enum pt_isa isa);
void pt_bulk4_avx2(const struct pt_view *v, const uint32_t *addr, uint32_t *value,
		   unsigned int n);
void pt_bulk6_avx2(const struct pt_view *v, const uint8_t *const *addr, uint32_t *value,
		   unsigned int n);
void pt_bulk4_avx512(const struct pt_view *v, const uint32_t *addr, uint32_t *value,
		     unsigned int n);
void pt_bulk6_avx512(const struct pt_view *v, const uint8_t *const *addr, uint32_t *value,
		     unsigned int n);
void pt_bulk4_small_avx512(const struct pt_view *v, const uint32_t *addr, uint32_t *value,
			   unsigned int n);
void pt_bulk6_small_avx512(const struct pt_view *v, const uint8_t *const *addr,
			   uint32_t *value, unsigned int n);

static inline struct pt_view *
pt_view(const struct poptrie *pt)
{
	return atomic_load_explicit(&pt->view, memory_order_acquire);
}

/*
 * Return true if the ranges may be read. This is a hint: the reader checks the turn again,
 * see ranges_unchanged(). Always false without AVX2.
 */
static inline bool
pt_has_ranges(const struct poptrie *pt)
{
	return (atomic_load_explicit(&pt->ranges_turn, memory_order_relaxed) & 1) == 0;
}

#endif
