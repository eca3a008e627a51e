/* SPDX-License-Identifier: BSD-3-Clause */
/* routes_from: the key `routes: {from: ...}` of the configuration. */
#ifndef BASE_ROUTES_FROM_H
#define BASE_ROUTES_FROM_H

#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/rtproto.h"

/* The source from which rib takes each route. */
enum routes_from {
	ROUTES_FROM_BOTH,   /* zebra for its protocols, the kernel for all others */
	ROUTES_FROM_FPM,    /* zebra, and the kernel for connected and local prefixes */
	ROUTES_FROM_KERNEL, /* the kernel for all routes */
};

/* Return the word of the configuration. */
static inline const char *
routes_from_name(enum routes_from from)
{
	return from == ROUTES_FROM_KERNEL ? "kernel"
	       : from == ROUTES_FROM_FPM  ? "fpm"
					  : "both";
}

/*
 * Return true if rib takes a route or a next-hop object of this protocol from the kernel's
 * tables. Next-hop objects and routes of MPLS labels have no metric: pass ZEBRA_METRIC.
 */
static inline bool
routes_from_kernel(enum routes_from from, uint8_t protocol, uint32_t metric)
{
	return from == ROUTES_FROM_KERNEL ||
	       (from == ROUTES_FROM_FPM ? protocol == RTPROT_KERNEL
					: !rtproto_is_copy(protocol, metric));
}

#endif
