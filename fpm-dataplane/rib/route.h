/* SPDX-License-Identifier: BSD-3-Clause */
/* Change the slot of a route. [rib] */
#ifndef RIB_ROUTE_H
#define RIB_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

struct rib;
struct route;

/*
 * Return the slot that the tries have for the route; 0: none. A route that table local
 * hides has the slot for the type of the hiding route. If only a route of type throw in
 * table local has the prefix, the prefix has the slot of the route of main that covers it.
 */
uint32_t route_fib_slot(const struct rib *rib, const struct route *r);
/* Return true if table local hides the route, so that no FIB uses it. */
bool route_is_hidden(const struct rib *rib, const struct route *r);
/* Stage the route in its tries. Return 0, or -ENOMEM: then the resync walk repeats it. */
int route_stage(struct rib *rib, const struct route *r);
/* Return true if every copy of the trie has the route's slot for its prefix. */
bool route_is_staged(const struct rib *rib, const struct route *r);
/*
 * Stage `r` after one of its sources changed, and remove it when it has none. `was` is
 * route_effective() before the change.
 */
void route_settle(struct rib *rib, struct route *r, uint32_t was);
/* Give slot `slot` to the route, which may have it already. */
void route_bind(struct rib *rib, struct route *r, uint32_t slot);
/*
 * Return true for a route that is stale until a new session sends it: routes that zebra
 * replays, and routes of VRFs.
 */
bool route_is_swept(const struct rib *rib, const struct route *r);

/*
 * Return true if there is no room for another route of zebra. Own addresses and connected
 * subnets always have room.
 */
bool routes_are_full(const struct rib *rib);
/* Count a route that is not taken. zebra is asked for a replay when there is room again. */
void routes_refuse(struct rib *rib);
/*
 * Count and log a route that is not stored for lack of memory. When there is memory again,
 * routes_report() asks zebra and rtnl for all routes.
 */
void routes_lack_memory(struct rib *rib);
/*
 * Once a round: report the number of routes, and ask for a replay if routes were refused or
 * not stored, and there is room again.
 */
void routes_report(struct rib *rib);

/* Log that the process is out of memory, at most once a second for all callers. */
void route_log_nomem(const char *what, uint64_t count);

#endif
