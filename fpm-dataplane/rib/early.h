/* SPDX-License-Identifier: BSD-3-Clause */
/* Routes that came before the nexthop object they name. [rib]. */
#ifndef RIB_EARLY_H
#define RIB_EARLY_H

#include <stdbool.h>
#include <stdint.h>

#include "rib/index.h"

struct rib;
struct route;

/* A route whose id means nothing yet: it keeps the way it had. */
struct early {
	struct route *route; /* NULL: entry is free */
	uint32_t nhid;
	uint16_t mtu_class;
};

struct rib_early {
	struct early *v; /* by number, from 1 */
	uint32_t high, cap, n;
	struct vec32 unused;
	struct hidx by_route;
};

/* Is `nhid` to be waited for by `r` (NULL: no such route), which then stays as it is? */
bool early_put(struct rib *rib, struct route *r, uint32_t nhid, uint16_t mtu_class);
void early_forget(struct rib *rib, const struct route *r); /* it means something else now */
enum early_due {
	EARLY_KNOWN, /* those whose id is known by now */
	EARLY_MAIN,  /* and all others that are replayed with main */
	EARLY_ALL,
};
void early_bind(struct rib *rib, enum early_due due);
void early_clear(struct rib *rib);
void early_free(struct rib *rib);

#endif
