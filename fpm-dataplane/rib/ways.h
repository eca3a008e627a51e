/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Next hops as content: what a slot of fib->group is compared, sorted and kept by. [rib].
 */
#ifndef RIB_WAYS_H
#define RIB_WAYS_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/fpm_event.h"
#include "fib/fib.h"

/* One way out, as content: compared and sorted with memcmp, so every octet counts. */
struct way {
	struct ipaddr gw;
	uint32_t ifindex;
	uint32_t weight;
	uint8_t gw_family;
	uint8_t encap;
	uint8_t onlink;
	uint8_t kind;       /* PATH_NONE: a hop; else this path, and all above is zero */
	uint16_t mtu_class; /* of the route: the same in all ways of a slot */
	uint16_t vrfs_own;  /* 1: a subnet on a VRF's own interface, no way into the VRF */
};
static_assert(sizeof(struct way) == 32, "no padding: memcmp compares");

struct ways {
	struct way *v;
	uint32_t n, cap;
	bool unresolved; /* some member is not known yet */
};

void way_special(struct way *w, enum path_kind kind);
void way_of_hop(struct way *w, const struct fpm_hop *hop);
void ways_clear(struct ways *ways);
struct way *ways_push(struct ways *ways);
void ways_sort(struct ways *ways);
void ways_set_mtu(struct ways *ways, uint16_t mtu_class);
uint64_t ways_hash(const struct ways *ways, uint64_t seed);
/* Content that needs no neighbor: own addresses, subnets, drops. There is little of it. */
bool ways_are_small(const struct ways *ways);

#endif
