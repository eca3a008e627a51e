/* SPDX-License-Identifier: BSD-3-Clause */
/* Slots of fib->group. [rib] */
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

/* A next hop of a slot, tied to the link and the adjacency that it needs. */
struct leg {
	struct next_hop hop;
	uint32_t adj;        /* number of the adjacency; 0: none */
	uint32_t encap : 31; /* entry of labels or of a headend (encap.h); 0: none */
	uint32_t
		lacks_adj : 1; /* needs an adjacency or one of the entries, and none was left */
	uint32_t sid;          /* entry of an end point of SRv6; 0: none */
	struct link *link;     /* NULL: needs none, or its interface is not known */
	struct slot *slot;
	struct cds_list_head on_link; /* in link->legs, if `link` is set */
	struct cds_list_head on_adj;  /* in `legs` of `adj`; if lacks_adj, in without_adj */
	struct cds_list_head
		floating; /* in rib->legs.floating: a gateway without an interface */
};

enum slot_kind {
	SLOT_FREE,
	SLOT_ID,     /* follows nexthop id `nhid` */
	SLOT_ORPHAN, /* followed an id of an older session; content frozen, may be adopted */
	SLOT_INLINE,  /* content without an id, shared by routes that have it */
	SLOT_RETIRED, /* no route left; waits for a grace period */
};

#define SLOT_CONTENT 1 /* dirty: get the next hops of the id again */
#define SLOT_PATHS   2 /* dirty: a link or neighbor changed; choose paths again */

struct slot {
	uint32_t number;
	uint32_t refs; /* by routes of zebra, records of the kernel, and rib itself */
	uint32_t nhid;
	uint32_t sibling; /* next slot of `nhid`; 0: none */
	/*
	 * The slot that the routes had before; 0: none. The first group word of this slot
	 * keeps the buckets of `former`. Valid until that word is published.
	 */
	uint32_t former;
	uint32_t n_legs;
	struct leg *leg;
	fib_path *block;           /* the buckets of the group word; NULL: one path */
	struct fib_egress *egress; /* the block of its word of fib->egress; NULL: none */
	uint64_t version;   /* of the word, unique among all words; 0: none is published */
	uint16_t mtu_class; /* SLOT_ID: the class of its routes */
	uint8_t kind;
	uint8_t dirty;
	uint8_t log2_block;
	bool of_kernel;       /* `nhid` is an id of the kernel */
	bool queued;          /* in rib->slots.dirty */
	bool idle;            /* in rib->slots.idle */
	bool indexed, exempt; /* in contents.by_hops; not counted by limits.groups */
	bool end_point;       /* a leg is an end point of SRv6 */
	bool refuses;         /* blackhole, unreachable or prohibit */
	bool mixed;           /* kernel_status.mixed counts it */
	bool of_ipv6;         /* IPv6 routes have, or had, the slot */
	bool of_others;       /* IPv4 routes or labels have, or had, it */
	bool ignored[2];      /* slot_ignored() for IPv4, IPv6 at the last word */
};

#define SLOT_CHUNK 1024u

struct rib_slots {
	struct slot *chunk[FIB_GROUP_MAX / SLOT_CHUNK];
	uint32_t high, n, n_exempt; /* n_exempt: part of n */
	bool refused;               /* no slot was left: some routes are unresolved */
	struct fifo32 unused;       /* the number that was freed first is used first */
	struct vec32 dirty, idle;
};

static inline struct slot *
slot_at(const struct rib_slots *slots, uint32_t number)
{
	return &slots->chunk[number / SLOT_CHUNK][number % SLOT_CHUNK];
}

/* Return the published word of a slot. Slot 0 has no path. */
uint64_t slot_word(const struct rib *rib, uint32_t number);
/*
 * Return a new slot. Return NULL when limits.groups slots are in use, or for `exempt`
 * content, when all are.
 */
struct slot *slot_new(struct rib *rib, enum slot_kind kind, bool exempt);
/* Return true while more than half of limits.groups slots are free. */
bool slots_are_ample(const struct rib *rib);
void slot_set_exempt(struct rib *rib, struct slot *s, bool exempt);
void slot_dirty(struct rib *rib, struct slot *s, uint8_t what);
/* Set s->end_point, after a leg of the slot got the entry of an end point, or lost it. */
void slot_note_end_point(struct rib *rib, struct slot *s);
/* Set s->refuses, after the next hops of the slot have changed. */
void slot_note_refusal(struct rib *rib, struct slot *s);
/* Record whether the slot has paths both by ports and by interfaces of the kernel. */
void slot_set_mixed(struct slot *s, bool mixed);
/*
 * Return true if Linux has marked the next hop as dead, and the mark counts: see struct
 * next_hop.
 */
bool leg_is_dead(const struct leg *leg);
/*
 * Return true if the kernel ignores the routes of a family (4 or 6) that have the slot:
 * each next hop is dead, or leaves by a link without carrier whose sysctl
 * ignore_routes_with_linkdown is set.
 */
bool slot_ignored(const struct slot *s, uint8_t family);
/* Record that a route of a family takes the slot. */
void slot_note_family(struct rib *rib, uint32_t number, uint8_t family);
void slot_ref(struct rib *rib, uint32_t number);
void slot_unref(struct rib *rib, uint32_t number);
void slot_release(struct rib *rib, uint32_t number); /* after the grace period */
void slots_free(struct rib *rib);

#endif
