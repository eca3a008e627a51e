/* SPDX-License-Identifier: BSD-3-Clause */
/* A route as a row of `show routes`; dist/openapi.yaml has the keys. [rib] (query.c) */
#ifndef RIB_ROUTE_ROW_H
#define RIB_ROUTE_ROW_H

#include <jansson.h>

#include "base/msg.h"

struct kroute;
struct rib;
struct route;

/*
 * The route of a prefix that a row shows: the slot, and the kernel's record if the kernel
 * is the source.
 */
struct shown_route {
	uint32_t slot; /* 0: nothing */
	const struct kroute *kr;
};

struct shown_route route_shown(const struct rib *rib, const struct route *r,
			       enum query_of of);
json_t *route_json(const struct rib *rib, const struct route *r,
		   const struct shown_route *shown);

#endif
