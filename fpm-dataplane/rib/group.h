/* SPDX-License-Identifier: BSD-3-Clause */
/* Divide the buckets of a group among its members. Pure functions. [any thread] */
#ifndef RIB_GROUP_H
#define RIB_GROUP_H

#include <stdint.h>

#include "fib/fib.h"

struct bucket_member {
	fib_path path;
	uint64_t weight;
	uint32_t target, have;
};

/*
 * Return log2 of the number of buckets for `n` members (2 or more), and set their targets.
 */
unsigned int group_log2(struct bucket_member *m, uint32_t n, unsigned int old_log2);
/*
 * Fill `out` (2^log2_n paths) so that each member has m[].target buckets. Keep as many
 * buckets of `old` (2^old_log2 paths; NULL: none) as possible.
 */
void group_fill(fib_path *out, unsigned int log2_n, struct bucket_member *m, uint32_t n,
		const fib_path *old, unsigned int old_log2);

#endif
