/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside of poptrie/: keys, the two node layouts, the view that readers see, the table.
 * Nothing here is for users of the library; the unit tests include it to force a layout.
 *
 * The truth is cut at the direct table: every direct slot owns a small radix tree of the
 * prefixes at least as long as the slot, one more tree (`top`) holds the shorter ones, and
 * the zero-length prefix is a plain value, `dflt`. So an update descends a few nodes only.
 */
#ifndef POPTRIE_IMPL_H
#define POPTRIE_IMPL_H

#include <assert.h>
#include <stdatomic.h>
#include "poptrie/poptrie.h"
#include "poptrie/pool.h"
#include "poptrie/radix.h"

#define PT_STRIDE    6
#define PT4_BITS     18   /* direct bits of IPv4 */
#define PT6_BITS     24   /* direct bits inside 2000::/3, its three leading bits included */
#define PT6_OTHER    12   /* direct bits of the rest of the IPv6 space */
#define PT_FEW       8    /* direct bits of a small table, IPv4 or IPv6 */
#define PT_RANGES    64   /* of a small table of IPv4, at most, see struct poptrie */
#define PT_DIRTY     4096 /* exactly remembered changes; above, whole slots are rebuilt */
#define PT_DIRTY_FEW 64   /* of a small table */
#define PT_CHILD     0x80000000u /* in 32-bit words: a child or node, not a value */
#define PT_VALUE16   0x7fffu     /* the largest value of a 16-bit leaf */
#define PT_FRAG \
	(1u << 19)        /* octets of a pool that may lie idle beside half of those used */
#define PT_VISITS   256u  /* nodes that any commit can look at: some 10 us */
#define PT_IDLE     4u    /* batches that are kept to be used again, ... */
#define PT_IDLE_CAP 4096u /* with no more room in the list of blocks than that: 32 KiB */
#define PT_LEVELS   21    /* of nodes below a direct slot, at most */

/* How the address space is cut into direct slots. */
enum pt_shape { PT_SHAPE4, PT_SHAPE6, PT_SHAPE_SMALL };

enum pt_layout {
	/*
	 * The direct entry is the first-level node: 16 octets, replaced by one aligned
	 * 16-byte store. IPv4 on CPUs where such accesses are atomic (all with AVX).
	 */
	PT_FUSED,
	/*
	 * The paper's: a 32-bit direct entry is a value or the index of a node, and a node
	 * names its children by a second vector, so each level costs one load. IPv6, whose
	 * tries are deep; IPv4 on old CPUs and under TSan, which cannot see vector accesses;
	 * small tables, whose direct table would be larger than all else.
	 */
	PT_WIDE,
};

/*
 * Bit v > 0 of `run` starts a new run of equal leaves at slot v (slot 0 needs no bit, so a
 * zeroed entry means "no route"). A slot with a child is a run of its own whose leaf has
 * the top bit set and counts children from child_base. leaf_base below 32768 names the
 * identity leaves: a uniform entry is {0, value, 0}.
 */
struct pt_fused {
	uint64_t run;
	uint32_t leaf_base;
	uint32_t child_base;
} __attribute__((aligned(16)));
static_assert(sizeof(struct pt_fused) == 16, "one aligned vector load and store");

/*
 * Slots with a child (bit in `child`) do not break a run of leaves. The way down needs the
 * first 16 octets only, the leaf at its end the 16 from child_base on.
 */
struct pt_wide {
	uint64_t child;
	uint32_t child_base;
	uint32_t leaf_base;
	uint64_t run;
	uint64_t bare; /* for the writer, see struct node */
};
static_assert(sizeof(struct pt_wide) == 32, "two nodes to a cache line");

enum pt_isa { PT_SCALAR, PT_AVX2, PT_AVX512 };

/* How far a walk over all nodes has come that moves blocks out of pages to be left. */
struct pt_walk {
	bool on;
	uint32_t slot;
	uint32_t
		n_path; /* in the slot: the node to go on with, by its slot in each level */
	uint8_t path[PT_LEVELS];
	size_t futile; /* octets of holes when there was nothing to be gained, and some more */
};

/*
 * Sixteen ranges of addresses: their ends, ascending, UINT32_MAX behind the last, and their
 * values. A short list is two lines of the cache.
 */
struct pt_ranges {
	uint32_t last[16] __attribute__((aligned(64)));
	uint32_t value[16];
};

/*
 * What readers follow. Everything they need hangs off one pointer, so that the leaf width
 * can change and pools can move by swinging it.
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
	bool few;    /* W:writer once  direct bits: PT_FEW; wide then */
	bool leaf32; /* W:writer once */
	/*
	 * Value of the zero-length prefix, in the low half, and how often it changed. It
	 * stands in for leaves of value 0: a default route is one store, not 2^18. Readers
	 * look again when it changed under them.   W:writer R:any
	 */
	_Atomic uint64_t dflt;

	/* Writer only from here. */
	struct pt_pool nodes, leaves;
	uint64_t *bare;      /* fused: `bare` of the nodes in the pool, see struct node */
	uint64_t *bare_slot; /* fused: of those in the direct table */
	size_t direct_bytes;
	struct pt_walk walk; /* of defragment() */
	unsigned int refs;   /* 1 while current or retired, 1 more for each batch */
};

/* A changed prefix, remembered until the commit. */
struct pt_dirty {
	struct pt_key key;
	uint32_t slot;
	uint32_t len;
};

struct pt_slot {
	uint32_t root;  /* radix tree of the prefixes in this slot */
	uint32_t cover; /* value of the longest prefix above the slot, default excluded */
};

/* A block of a pool, packed: top bit nodes (else leaves), 31 bits size, 32 bits index. */
struct pt_blocks {
	uint64_t *rec;
	size_t n, cap;
};

struct pt_batch {
	struct poptrie_retired pub;
	struct pt_view *of;   /* whose pools the blocks belong to; holds a reference */
	struct pt_view *gone; /* a whole view replaced, or NULL */
	struct pt_blocks old;
	size_t bytes;
	struct pt_batch *next; /* when idle */
};

struct poptrie {
	_Atomic(struct pt_view *) view; /* W:writer R:any */
	/*
	 * A small table of IPv4 once more, while it is as few ranges of addresses: each key is
	 * compared with all their ends, and neither view nor node is read. The default is in it.
	 * Readers look at the turn before and after; where it is odd or another one, the nodes
	 * answer. Here and not behind another pointer: all lines that a lookup of one table among
	 * hundreds waits for are known at once.
	 */
	_Atomic uint32_t ranges_turn;            /* W:writer R:any  odd: not to be read */
	uint32_t n_ranges;                       /* W:writer R:any  1 to PT_RANGES */
	struct pt_ranges ranges[PT_RANGES / 16]; /* W:writer R:any */

	/* Writer only from here. */
	struct pt_mem mem __attribute__((aligned(64)));
	void (*retire)(void *ctx, struct poptrie *pt, struct poptrie_retired *r);
	bool ip6;
	bool wide;
	enum pt_shape shape;
	enum pt_isa isa;
	bool want32;           /* a value that needs 32-bit leaves was staged; never back */
	bool reader_hit;       /* readers may have met a route since the table was empty */
	unsigned int bits_max; /* 32 or 128 */
	uint32_t n_slots;
	uint32_t dflt; /* staged */
	struct pt_radix radix;
	uint32_t top; /* tree of the prefixes shorter than a slot */
	struct pt_slot *slot;
	uint64_t *used;  /* a bit a slot with a root, for the cursor */
	uint64_t *full;  /* a bit a slot to visit, its prefixes not being listed */
	uint64_t *whole; /* of those, to rebuild; else only the cover changed */
	uint32_t full_lo, full_hi; /* words of `full` that may be set: lo <= w < hi */
	struct pt_dirty *dirty;
	uint32_t n_dirty, most_dirty;
	struct pt_blocks fresh; /* blocks of the slot being rebuilt, to undo */
	struct pt_batch *idle;
	unsigned int n_idle;
	uint64_t routes, commits, slots_rebuilt;
	uint64_t depth[POPTRIE_DEPTHS];
	size_t retired_bytes;
	uint64_t retired_nodes, retired_leaves;
	uint32_t least_visits; /* of a commit while there are holes to be closed */
};

/* Slot of key's address, in address order over the whole space. */
static inline uint32_t
pt_slot_of(enum pt_shape shape, struct pt_key k)
{
	const uint32_t low = 1u << (PT6_OTHER - 3);

	if (shape == PT_SHAPE4)
		return k.hi >> (64 - PT4_BITS);
	if (shape == PT_SHAPE_SMALL)
		return k.hi >> (64 - PT_FEW);
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
		return PT_FEW;
	return k.hi >> 61 == 1 ? PT6_BITS : PT6_OTHER;
}

static inline uint32_t
pt_slot_count(enum pt_shape shape)
{
	if (shape == PT_SHAPE4)
		return 1u << PT4_BITS;
	if (shape == PT_SHAPE_SMALL)
		return 1u << PT_FEW;
	return (1u << (PT6_BITS - 3)) + (7u << (PT6_OTHER - 3));
}

/* build.c */
int pt_slot_rebuild(struct poptrie *pt, struct pt_view *v, struct pt_batch *batch,
		    uint32_t slot, const struct pt_dirty *dirty, uint32_t n_dirty,
		    uint32_t uncovered);
bool pt_slot_recover(const struct poptrie *pt, struct pt_view *v, uint32_t slot,
		     uint32_t uncovered);
int pt_view_rebuild(struct poptrie *pt, struct pt_batch *batch, bool leaf32);

/* defragment.c */
void pt_defragment(struct poptrie *pt, struct pt_batch *batch);
bool pt_walk_begin(struct pt_view *v, uint32_t gain);

/* ranges.c */
void pt_ranges_close(struct poptrie *pt);
void pt_ranges_open(struct poptrie *pt);
/* ranges_avx512.c */
bool pt_ranges_bulk_avx512(const struct poptrie *pt, const uint32_t *addr, uint32_t *value,
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

/* poptrie.c: create with a given layout and variant; poptrie_create chooses by CPU. */
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
void pt_bulk4_few_avx512(const struct pt_view *v, const uint32_t *addr, uint32_t *value,
			 unsigned int n);
void pt_each4_avx512(const struct poptrie *const *pt, const uint32_t *addr, uint32_t *value,
		     unsigned int n);
void pt_bulk6_few_avx512(const struct pt_view *v, const uint8_t *const *addr,
			 uint32_t *value, unsigned int n);

static inline struct pt_view *
pt_view(const struct poptrie *pt)
{
	return atomic_load_explicit(&pt->view, memory_order_acquire);
}

/* So it seems: whoever reads them asks again, see ranges_kept(). Only where there is AVX-512. */
static inline bool
pt_has_ranges(const struct poptrie *pt)
{
	return (atomic_load_explicit(&pt->ranges_turn, memory_order_relaxed) & 1) == 0;
}

#endif
