/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Interfaces of the control namespace, by index. [rib]. This file knows nothing of struct rib.
 */
#ifndef RIB_LINK_H
#define RIB_LINK_H

#include <stdbool.h>
#include <stdint.h>
#include <urcu/list.h>

#include "rib/index.h"

struct link {
	uint32_t ifindex;
	uint32_t number;
	uint16_t ifidx, vrf; /* number of it as a port of ours, as a VRF; 0: it is none */
	bool known, up;
	char name[16];
	struct cds_list_head legs;
};

struct rib_links {
	struct link **v; /* by number, from 1; NULL: number is free */
	uint32_t high, cap;
	struct vec32 unused;
	struct hidx by_ifindex;
};

struct link *rib_link_find(const struct rib_links *links, uint32_t ifindex);
struct link *rib_link_get(struct rib_links *links, uint32_t ifindex);
/* Forget a link that the kernel has not told us of (any more) and no leg leaves by. */
void rib_link_maybe_free(struct rib_links *links, struct link *link);
void links_free(struct rib_links *links);

#endif
