/* SPDX-License-Identifier: BSD-3-Clause */
/* kernel_table: read the kernel's routing tables. */
#ifndef CTL_KERNEL_TABLE_H
#define CTL_KERNEL_TABLE_H

#include "ctl/kernel_route.h"

struct route_reader {
	/* Called before each answer, to discard the routes of an interrupted answer. */
	void (*on_begin)(void *ctx);
	/*
	 * Gets the routes in the kernel's order: among equal metrics the first route
	 * counts.
	 */
	void (*on_route)(struct kernel_route *r, void *ctx);
	void *ctx;
};

/*
 * Read the routes of one family in the present network namespace: of all prefixes, or with
 * `p` only of this prefix. Leaves out prefixes that no FIB has: loopback, link-local,
 * multicast. Returns 0, or -1 after printing an error: the answer is not complete.
 */
int kernel_table(uint8_t family, const struct prefix *p, const struct route_reader *to);

#endif
