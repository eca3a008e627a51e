/* SPDX-License-Identifier: BSD-3-Clause */
/* Contents of slots: found, shared, adopted. [rib]. */
#ifndef RIB_CONTENT_H
#define RIB_CONTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fib/fib.h"
#include "rib/index.h"

struct nh;
struct rib;
struct slot;
struct nh_list;

struct rib_contents {
	struct hidx by_hops; /* SLOT_INLINE and SLOT_ORPHAN */
	uint32_t n_orphans;
	uint32_t unresolved; /* slot; permanent; also what is left when slots run out */
	uint32_t mtu_high;   /* classes of fib->mtu_bytes in use, for good */
	size_t leg_bytes;
};

/*
 * Class of a route's MTU, of the family's least and 65535 octets at most; 0 when `mtu_bytes`
 * is 0, limits nothing, or all classes mean something else (counted).
 */
uint16_t mtu_class_of(struct rib *rib, uint8_t family, uint32_t mtu_bytes);
bool slot_has_hops(const struct slot *s, const struct nh_list *hops);
void slot_set_hops(struct rib *rib, struct slot *s, const struct nh_list *hops);
/* Slot of content without an id; `hint` is the slot that the route has now, or 0. */
uint32_t slot_for_hops(struct rib *rib, const struct nh_list *hops, uint32_t hint);
/* A slot with the content of one of an older process; 0 when all are in use. */
uint32_t slot_restore(struct rib *rib, const struct nh_list *hops);
uint32_t slot_for_kind(struct rib *rib, enum path_kind kind);
/* Slot of a nexthop id, announced or not, for routes of one MTU class. */
uint32_t slot_for_id(struct rib *rib, uint32_t id, uint16_t mtu_class, uint32_t hint);
/* The same when it is there; 0 when not. */
uint32_t slot_of_id(const struct rib *rib, const struct nh *nh, uint16_t mtu_class);
/* The session is over: all slots of ids become orphans. */
void slots_orphan(struct rib *rib);
/* No route names it and none can any more; the word stays until readers are done. */
void slot_retire(struct rib *rib, struct slot *s);
void contents_init(struct rib *rib);
void contents_free(struct rib *rib);

#endif
