/* SPDX-License-Identifier: BSD-3-Clause */
/* Find, share and adopt slots by their content. [rib] */
#ifndef RIB_CONTENT_H
#define RIB_CONTENT_H

#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fpm_event.h"
#include "base/mpls_entry.h"
#include "fib/fib.h"
#include "rib/index.h"
#include "rib/nexthop.h"

/*
 * The largest number of slots with one id (or content) and one MTU class. Routes whose
 * flows are on different members now have different slots.
 */
#define SLOT_VARIANTS 16u

struct rib;
struct slot;
struct nh_list;

struct rib_contents {
	struct hidx by_hops; /* SLOT_INLINE and SLOT_ORPHAN */
	uint32_t n_orphans;
	uint32_t unresolved; /* PATH_UNRESOLVED, permanent; used when slots run out */
	/*
	 * Slots for routes that a route of table local hides, by the type (RTN_*) of the
	 * route that hides them; 0: none yet.
	 */
	uint32_t hidden[RTN_THROW];
	/*
	 * A slot with PATH_THROW: for short prefixes in views, and for prefixes with a
	 * route of type throw in table local and no route in main; 0: none yet.
	 */
	uint32_t suppressed;
	uint32_t mtu_high; /* classes of fib->mtu_bytes in use; never freed */
	size_t leg_bytes;
	/* A cache: the slot that was chosen last for the routes of another slot. */
	struct choice_memo {
		uint64_t from; /* version of the other slot */
		uint64_t what; /* id and MTU class, or hash of the content */
		uint64_t version;
		uint32_t slot;
		bool moves; /* the choice moves flows of next hops that stay */
	} memo[512];
};

/*
 * Return the class of a route's MTU. An MTU below the minimum of the family counts as the
 * minimum. Return 0 if `mtu_bytes` is 0 or at least 65535, which limits nothing, or if all
 * classes are in use with other MTUs (counted).
 */
uint16_t mtu_class_of(struct rib *rib, uint8_t family, uint32_t mtu_bytes);
/* Return the class of a route's paths: that of its label mode if given, else of its MTU. */
uint16_t class_of_event(struct rib *rib, const struct fpm_event *ev);
bool slot_has_hops(const struct slot *s, const struct nh_list *hops);
void slot_set_hops(struct rib *rib, struct slot *s, const struct nh_list *hops);
/*
 * Return the slot for content without an id. `hint` is the slot that the route has now, or
 * 0.
 */
uint32_t slot_for_hops(struct rib *rib, const struct nh_list *hops, uint32_t hint);
/* Return a slot with this content that has no id (SLOT_INLINE); 0: there is none. */
uint32_t slot_find_hops(struct rib *rib, const struct nh_list *hops);
/*
 * Return a new slot with content from a checkpoint; 0 when all slots are in use.
 * `of_kernel`: make it a slot of content without an id, for routes of the kernel. Otherwise
 * make it an orphan.
 */
uint32_t slot_restore(struct rib *rib, const struct nh_list *hops, bool of_kernel);
/* Return true if a is b, or if both have the same MTU class and the same id or content. */
bool slots_are_variants(const struct rib *rib, uint32_t a, uint32_t b);
uint32_t slot_for_kind(struct rib *rib, enum path_kind kind);
void slot_make_suppressed(struct rib *rib); /* set contents.suppressed if it is 0 */
/*
 * Return the slot of a nexthop id, announced or not, for routes of one MTU class. If the
 * id has several slots, return the first that moves no flow without need.
 */
uint32_t slot_for_id(struct rib *rib, nh_id id, uint16_t mtu_class, uint32_t hint);
/* Return one slot of a nexthop id and MTU class; 0: there is none. */
uint32_t slot_of_id(const struct rib *rib, const struct nh *nh, uint16_t mtu_class);
/* Return the id that a slot of kind SLOT_ID follows. */
struct nh *slot_nh(const struct rib *rib, const struct slot *s);
/* Make orphans of all slots that have an id of zebra, because its session is over. */
void slots_orphan(struct rib *rib);
/*
 * Retire a slot that no route names or can find. Its word stays until the grace period is
 * over.
 */
void slot_retire(struct rib *rib, struct slot *s);
void contents_init(struct rib *rib);
void contents_free(struct rib *rib);

#endif
