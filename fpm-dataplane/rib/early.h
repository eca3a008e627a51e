/* SPDX-License-Identifier: BSD-3-Clause */
/* Routes that arrived before the nexthop object that they name. [rib] */
#ifndef RIB_EARLY_H
#define RIB_EARLY_H

#include <stdbool.h>
#include <stdint.h>

#include "rib/index.h"

struct rib;
struct route;

/* A route whose id is not resolved yet. It keeps its present slot. */
struct early {
	struct route *route; /* NULL: entry is free */
	uint32_t nhid;
	uint16_t mtu_class;
};

struct rib_early {
	struct early *v; /* by number, from 1 */
	uint32_t high, cap, n;
	struct vec32 unused;
	struct hidx by_route;
};

/*
 * If `r` must wait for `nhid` with its present slot, record `r` and return true. Return
 * false if the route is to be bound at once (always if `r` is NULL).
 */
bool early_put(struct rib *rib, struct route *r, uint32_t nhid, uint16_t mtu_class);
void early_forget(struct rib *rib, const struct route *r); /* zebra changed or deleted it */
enum early_due {
	EARLY_KNOWN, /* routes whose id is resolved now */
	EARLY_MAIN,  /* these, and all others that are replayed with main */
	EARLY_ALL,
};
void early_bind(struct rib *rib, enum early_due due);
void early_clear(struct rib *rib);
void early_free(struct rib *rib);

#endif
