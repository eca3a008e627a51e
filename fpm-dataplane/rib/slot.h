/* SPDX-License-Identifier: BSD-3-Clause */
/* Slots of fib->group. [rib]. */
#ifndef RIB_SLOT_H
#define RIB_SLOT_H

#include <stdbool.h>
#include <stdint.h>
#include <urcu/list.h>

#include "fib/fib.h"
#include "rib/index.h"
#include "rib/nh_list.h"

struct link;
struct rib;
struct slot;

/* A way of a slot, tied to the link and the adjacency it needs. */
struct leg {
	struct next_hop hop;
	uint32_t adj;      /* 0: none */
	bool lacks_adj;    /* wants one, and there was none left */
	struct link *link; /* NULL: needs none, or its interface is not known */
	struct slot *slot;
	struct cds_list_head on_link; /* in link->legs, when link */
	struct cds_list_head on_adj;  /* in adj->legs, when adj; in rib->legs.without_adj */
	struct cds_list_head
		floating; /* in rib->legs.floating: gateway without interface */
};

enum slot_kind {
	SLOT_FREE,
	SLOT_ID,     /* follows nexthop id `nhid`, alone of its MTU class */
	SLOT_ORPHAN, /* followed an id of an older session; content frozen, may be adopted */
	SLOT_INLINE,  /* content without an id: shared by all routes with that content */
	SLOT_RETIRED, /* no route left; waits for a grace period */
};

#define SLOT_CONTENT 1 /* dirty: ask the id for its ways again */
#define SLOT_PATHS   2 /* dirty: a link or neighbor changed; choose paths again */

struct slot {
	uint32_t number;
	uint32_t refs; /* routes */
	uint32_t nhid;
	uint32_t
		sibling; /* next slot of `nhid`, for routes of another MTU class; 0: none */
	uint32_t n_legs;
	struct leg *leg;
	fib_path *block;    /* what the group word points at, NULL when inline */
	uint16_t mtu_class; /* SLOT_ID */
	uint8_t kind;
	uint8_t dirty;
	uint8_t log2_block;
	bool queued;          /* in rib->slots.dirty */
	bool idle;            /* in rib->slots.idle */
	bool indexed, exempt; /* small: it came with content that needs no neighbor */
};

#define SLOT_CHUNK 1024u

struct rib_slots {
	struct slot *chunk[FIB_GROUP_MAX / SLOT_CHUNK];
	uint32_t high, n, n_exempt; /* small: of n */
	bool refused;               /* no room: some are unresolved */
	struct vec32 unused;        /* first in, first out from unused_at */
	uint32_t unused_at;
	struct vec32 dirty, idle;
};

static inline struct slot *
slot_at(const struct rib_slots *slots, uint32_t number)
{
	return &slots->chunk[number / SLOT_CHUNK][number % SLOT_CHUNK];
}

/* A fresh slot; NULL when as many are in use as there may be, or, for `small` content, all. */
struct slot *slot_new(struct rib *rib, enum slot_kind kind, bool exempt);
void slot_set_exempt(struct rib *rib, struct slot *s, bool exempt);
void slot_dirty(struct rib *rib, struct slot *s, uint8_t what);
void slot_ref(struct rib *rib, uint32_t number);
void slot_unref(struct rib *rib, uint32_t number);
void slot_release(struct rib *rib, uint32_t number); /* after the grace period */
void slots_free(struct rib *rib);

#endif
