/* SPDX-License-Identifier: BSD-3-Clause */
/* A route as a row of `show routes`; dist/openapi.yaml has the keys. [rib] */
#ifndef RIB_ROUTE_ROW_H
#define RIB_ROUTE_ROW_H

#include <jansson.h>

#include "base/msg.h"
#include "fib/fib.h"

struct kroute;
struct leg;
struct rib;
struct route;
struct slot;
struct vrf;

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

/*
 * Return the kind that names the state of a path. A path that pushes labels counts as a
 * path to an adjacency.
 */
enum path_kind path_shown_kind(fib_path path);
/* Return path_shown_kind() of the first path of a slot's group. */
enum path_kind slot_path_kind(const struct rib *rib, uint32_t number);
const char *path_state_name(enum path_kind kind);
/* Return the name of the interface of a next hop, or null. */
json_t *dev_json(const struct leg *leg);
/* Return the next hops of a slot as rows. */
json_t *legs_json(const struct rib *rib, const struct slot *s);
/* Return the MTU of a slot's routes, or null. */
json_t *mtu_json(const struct rib *rib, const struct slot *s);
/* Return the name of a VRF, or null if `vrf` is NULL. */
json_t *vrf_json(const struct vrf *vrf);

#endif
