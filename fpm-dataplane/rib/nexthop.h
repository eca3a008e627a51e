/* SPDX-License-Identifier: BSD-3-Clause */
/* Nexthop ids of the present session and of the kernel: singletons and groups. [rib] */
#ifndef RIB_NEXTHOP_H
#define RIB_NEXTHOP_H

#include <stdbool.h>
#include <stdint.h>
#include <urcu/list.h>

#include "rib/index.h"
#include "rib/nh_list.h"

struct fpm_event;
struct rib;

struct member {
	struct nh *nh;    /* the singleton */
	struct nh *group; /* the group that names it */
	uint32_t weight;
	struct cds_list_head in; /* nh->member_of */
};

/*
 * A next-hop id of zebra, or one of the kernel. The kernel and zebra number their objects
 * independently.
 */
typedef uint64_t nh_id;
#define NH_OF_KERNEL (1ull << 32)

static inline nh_id
nh_id_of_kernel(uint32_t id)
{
	return NH_OF_KERNEL | id;
}

struct nh {
	nh_id id;
	uint32_t number; /* in rib->nhs */
	uint32_t slot; /* its first slot, in the list of its slots; 0: no route names it */
	uint32_t n_member;
	uint32_t n_groups; /* groups that name it: the length of member_of */
	bool known;        /* announced in this session */
	bool absent;       /* deleted while in use: the last content stays in force */
	bool is_group;
	uint32_t dump;       /* of the kernel: the last dump that showed it */
	bool to_free;        /* in rib->nhs.to_free */
	bool unresolved;     /* result of nh_is_unresolved() (early.c) ... */
	uint64_t checked;    /* ... when rib->nhs.n_changes had this value */
	struct next_hop hop; /* of a singleton */
	struct member *member;
	struct cds_list_head member_of;
};

struct rib_nexthops {
	struct nh **v; /* by number, from 1; NULL: number is free */
	uint32_t high, cap, n;
	struct vec32 unused, to_free;
	bool freeing; /* nh_maybe_free() is freeing the ids of to_free */
	struct hidx by_id;
	bool changed;       /* an id changed since the last early_bind() */
	uint64_t n_changes; /* of ids */
};

/*
 * Store the content of an event FPM_NEXTHOP or KERNEL_NEXTHOP. The members of a group are
 * of zebra or of the kernel, as the group is.
 */
void nh_upsert(struct rib *rib, nh_id id, const struct fpm_event *ev);
/*
 * Mark an id that zebra deleted. Its last content stays in force while routes or groups use
 * it.
 */
void nh_delete(struct rib *rib, nh_id id);
/*
 * Remove an id that the kernel deleted, together with its routes. Users of the id that
 * still exist here become unresolved.
 */
void nh_remove(struct rib *rib, nh_id id);
struct nh *nh_find(const struct rib *rib, nh_id id);
struct nh *nh_get(struct rib *rib, nh_id id);
void nh_hops(struct rib *rib, const struct nh *nh, uint16_t mtu_class, struct nh_list *out);
void nh_maybe_free(struct rib *rib, struct nh *nh);
/* Remove the ids of the kernel that dump number `dump` did not show. */
void nhs_end_dump(struct rib *rib, uint32_t dump);
/* Forget all ids of zebra, because its session is over. */
void nhs_end_session(struct rib *rib);
void nhs_free(struct rib *rib);

#endif
