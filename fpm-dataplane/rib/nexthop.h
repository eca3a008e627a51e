/* SPDX-License-Identifier: BSD-3-Clause */
/* Nexthop ids of the present session: singletons and groups. [rib]. */
#ifndef RIB_NEXTHOP_H
#define RIB_NEXTHOP_H

#include <stdbool.h>
#include <stdint.h>
#include <urcu/list.h>

#include "rib/index.h"
#include "rib/ways.h"

struct fpm_event;
struct rib;

struct member {
	struct nh *nh;    /* the singleton */
	struct nh *group; /* that names it */
	uint32_t weight;
	struct cds_list_head in; /* nh->member_of */
};

struct nh {
	uint32_t id;
	uint32_t number; /* in rib->nhs */
	uint32_t slot;   /* first of its slots, one an MTU class; 0: no route names it */
	uint32_t n_member;
	uint32_t n_groups; /* groups that name it: the length of member_of */
	bool known;        /* announced in this session */
	bool absent;       /* deleted while in use: last content stays in force */
	bool is_group;
	bool doomed;        /* in rib->nhs.doomed */
	bool means_nothing; /* early.c's judgement ... */
	uint64_t judged;    /* ... when rib->nhs.turn was this */
	struct way way;     /* of a singleton */
	struct member *member;
	struct cds_list_head member_of;
};

struct rib_nexthops {
	struct nh **v; /* by number, from 1; NULL: number is free */
	uint32_t high, cap, n;
	struct vec32 unused, doomed;
	bool dooming;
	struct hidx by_id;
	bool changed;  /* some id, since the last early_bind() */
	uint64_t turn; /* counts changes of ids, from 1 */
};

void nh_upsert(struct rib *rib, const struct fpm_event *ev);
void nh_delete(struct rib *rib, uint32_t id);
struct nh *nh_find(const struct rib *rib, uint32_t id);
struct nh *nh_get(struct rib *rib, uint32_t id);
void nh_ways(struct rib *rib, const struct nh *nh, uint16_t mtu_class, struct ways *out);
void nh_maybe_free(struct rib *rib, struct nh *nh);
void nhs_free(struct rib *rib);

#endif
