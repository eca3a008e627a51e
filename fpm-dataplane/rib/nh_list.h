/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists of next hops: the content by which slots of fib->group are compared and found.
 * [rib]
 */
#ifndef RIB_NH_LIST_H
#define RIB_NH_LIST_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/fpm_event.h"
#include "fib/fib.h"

/* One next hop as content. It is compared and sorted with memcmp, so every octet counts. */
struct next_hop {
	struct ipaddr gw;
	uint32_t ifindex;
	uint32_t weight : 31;
	/*
	 * IPv4 routes of the kernel: Linux has marked the next hop as dead. rib obeys the mark
	 * only while the link is down or has no IPv4 address, because it learns from neigh that
	 * the link is up again before a dump shows that the mark has ended.
	 */
	uint32_t dead : 1;
	uint8_t gw_family;
	uint8_t encap; /* enum hop_encap */
	/* PATH_NONE: a next hop; else only a path, and all members above are zero */
	uint8_t kind;
	uint8_t refusal;         /* HOP_SEG6 without a stack: enum srv6_refusal */
	uint32_t mtu_class : 10; /* of the route: the same in all next hops of a slot */
	uint32_t stack : 20;     /* HOP_MPLS, HOP_SEG6: number in stack.h; 0: unsupported */
	uint32_t onlink : 1;
	/*
	 * The meaning depends on the kind. Connected subnet: no lookup in the VRF of its
	 * link. Path that refuses packets: the route is in table local. PATH_LOCAL,
	 * PATH_BCAST: the route is not in table local.
	 */
	uint32_t vrf_subnet : 1;
};
static_assert(sizeof(struct next_hop) == 32, "no padding: memcmp compares");
#define NEXT_HOP_WEIGHT_MAX ((1u << 31) - 1)
static_assert(FIB_MTU_MAX <= 1u << 10, "a class fits");

struct nh_list {
	struct next_hop *v;
	uint32_t n, cap;
	bool unresolved; /* some member is not known yet */
};

/* Return true if the contents are equal. Whether the next hops are dead does not matter. */
bool next_hops_agree(const struct next_hop *a, const struct next_hop *b);
void next_hop_special(struct next_hop *hop, enum path_kind kind);
/*
 * Set a next hop from a decoded event. The caller sets hop->stack (stack_next_hop()).
 */
void next_hop_from_fpm(struct next_hop *hop, const struct fpm_hop *from);
void nh_list_clear(struct nh_list *hops);
/*
 * Fill the list for a route of type `rtm_type` (RTN_*) that has no next hops, such as local
 * or blackhole. Return false, with an empty list, for a type that has next hops.
 */
bool nh_list_set_type(struct nh_list *hops, uint8_t rtm_type);
/* Like nh_list_set_type(), for a route of table local. */
bool nh_list_set_local_type(struct nh_list *hops, uint8_t rtm_type);
struct next_hop *nh_list_push(struct nh_list *hops);
void nh_list_sort(struct nh_list *hops);
void nh_list_set_mtu(struct nh_list *hops, uint16_t mtu_class);
uint64_t nh_list_hash(const struct nh_list *hops, uint64_t seed);
/*
 * Return true for content that needs no neighbor: own addresses, subnets, drops. Few slots
 * have such content.
 */
bool nh_list_needs_no_neighbor(const struct nh_list *hops);

#endif
