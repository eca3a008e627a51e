/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Next hops as content: what a slot of fib->group is compared, sorted and kept by. [rib].
 */
#ifndef RIB_NH_LIST_H
#define RIB_NH_LIST_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/fpm_event.h"
#include "fib/fib.h"

/* One way out, as content: compared and sorted with memcmp, so every octet counts. */
struct next_hop {
	struct ipaddr gw;
	uint32_t ifindex;
	uint32_t weight;
	uint8_t gw_family;
	uint8_t encap;
	uint8_t onlink;
	uint8_t kind;        /* PATH_NONE: a hop; else this path, and all above is zero */
	uint16_t mtu_class;  /* of the route: the same in all ways of a slot */
	uint16_t vrf_subnet; /* 1: a subnet on a VRF's own interface, no way into the VRF */
};
static_assert(sizeof(struct next_hop) == 32, "no padding: memcmp compares");

struct nh_list {
	struct next_hop *v;
	uint32_t n, cap;
	bool unresolved; /* some member is not known yet */
};

void next_hop_special(struct next_hop *hop, enum path_kind kind);
void next_hop_from_fpm(struct next_hop *hop, const struct fpm_hop *from);
void nh_list_clear(struct nh_list *hops);
struct next_hop *nh_list_push(struct nh_list *hops);
void nh_list_sort(struct nh_list *hops);
void nh_list_set_mtu(struct nh_list *hops, uint16_t mtu_class);
uint64_t nh_list_hash(const struct nh_list *hops, uint64_t seed);
/* Content that needs no neighbor: own addresses, subnets, drops. There is little of it. */
bool nh_list_needs_no_neighbor(const struct nh_list *hops);

#endif
