/* SPDX-License-Identifier: BSD-3-Clause */
/* What becomes of a route when its slot changes. [rib]. */
#ifndef RIB_ROUTE_H
#define RIB_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

struct rib;
struct route;

/* Bring the trie to what the route says. Returns 0 or -ENOMEM: then a walk repeats it. */
int route_stage(struct rib *rib, const struct route *r);
/* Does every copy of the trie say of its prefix what the route says? */
bool route_is_staged(const struct rib *rib, const struct route *r);
/* The sources of `r` changed; `was` is what the trie has. Removes an empty route. */
void route_settle(struct rib *rib, struct route *r, uint32_t was);
/* The route takes slot `slot`, which may be the one it has. */
void route_bind(struct rib *rib, struct route *r, uint32_t slot);
/* Can a new session that did not say it call it stale? What is replayed, and routes of VRFs. */
bool route_is_swept(const struct rib *rib, const struct route *r);

/* Is there no room for one more of zebra's? Own addresses and connected subnets have some always. */
bool routes_are_full(const struct rib *rib);
/* One is not taken: counted, and zebra asked for it when there is room again. */
void routes_refuse(struct rib *rib);
/* Once a round: how many there are, and whether that leaves room. */
void routes_report(struct rib *rib);

/* Log that memory is out, once a second at most for all that lacks it. */
void route_log_nomem(const char *what, uint64_t count);

#endif
