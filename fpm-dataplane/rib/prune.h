/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * prune: next hops that BFD has found dead. A group that has another member stops using
 * them at once, as it does if the kernel has given up a neighbor. [rib]
 */
#ifndef RIB_PRUNE_H
#define RIB_PRUNE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/prefix.h"
#include "rib/index.h"

struct msg_bfd_hop;
struct rib;

struct prune {
	uint32_t ifindex;
	uint8_t family; /* 0: addr is ipaddr_of_mac() of IPv6 neighbors */
	struct ipaddr addr;
};

struct rib_prunes {
	struct prune *v; /* by number */
	uint32_t cap, high, n;
	struct vec32 unused;
	struct hidx by_key;
};

/*
 * Handle MSG_BFD_HOP: BFD has found a next hop dead, or alive again. Return true if its
 * state changes; the caller then updates the adjacencies.
 */
bool prune_event(struct rib *rib, const struct msg_bfd_hop *m);
/* Return true if BFD has found this next hop dead. */
bool prune_has(const struct rib *rib, uint32_t ifindex, uint8_t family,
	       const struct ipaddr *addr);
void prunes_free(struct rib_prunes *prunes);

#endif
