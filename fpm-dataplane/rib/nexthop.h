/* SPDX-License-Identifier: BSD-3-Clause */
/* Nexthop ids of the present session: singletons and groups. [rib]. */
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

struct nh {
	uint32_t id;
	uint32_t number; /* in rib->nhs */
	uint32_t slot;   /* its first, of one for each MTU class; 0: no route names it */
	uint32_t n_member;
	uint32_t n_groups; /* groups that name it: the length of member_of */
	bool known;        /* announced in this session */
	bool absent;       /* deleted while in use: the last content stays in force */
	bool is_group;
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
	bool freeing;
	struct hidx by_id;
	bool changed;       /* an id changed since the last early_bind() */
	uint64_t n_changes; /* of ids */
};

void nh_upsert(struct rib *rib, const struct fpm_event *ev);
void nh_delete(struct rib *rib, uint32_t id);
struct nh *nh_find(const struct rib *rib, uint32_t id);
struct nh *nh_get(struct rib *rib, uint32_t id);
void nh_hops(struct rib *rib, const struct nh *nh, uint16_t mtu_class, struct nh_list *out);
void nh_maybe_free(struct rib *rib, struct nh *nh);
void nhs_free(struct rib *rib);

#endif
