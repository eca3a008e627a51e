/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Interfaces of the control namespace, by index. [rib]. This file does not use struct rib.
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
	/* numbers as an interface of forwarders and as a VRF; 0: it is none */
	uint16_t ifidx, vrf;
	bool known, up;
	bool tunnel;             /* a tunnel that forwarders serve: it has no neighbors */
	bool gre;                /* a tunnel of GRE, which takes MPLS labels */
	bool ignore_linkdown[2]; /* IPv4, IPv6: without carrier its routes do not count */
	bool ipv6_off;           /* no IPv6 packet may leave by it */
	bool no_ipv4;            /* it has no IPv4 address */
	bool lost_subnet;        /* a mark of link_rows(); false outside of it */
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
/* Free a link that the kernel does not report and on which no leg is. */
void rib_link_maybe_free(struct rib_links *links, struct link *link);
void links_free(struct rib_links *links);

#endif
