/* SPDX-License-Identifier: BSD-3-Clause */
/* Divide the buckets of a group among its members. Pure functions. [any thread] */
#ifndef RIB_GROUP_H
#define RIB_GROUP_H

#include <stddef.h>
#include <stdint.h>

#include "fib/fib.h"

struct bucket_member {
	fib_path path;
	uint32_t hash; /* hash of the gateway and the interface */
	uint64_t weight;
	uint32_t target, have; /* buckets that the member must have, and has */
};

/*
 * Return log2 of the number of buckets for `n` members (2 or more), and set their targets.
 * The number is at least 2^old_log2, because fewer buckets would merge flows.
 */
unsigned int group_log2(struct bucket_member *m, uint32_t n, unsigned int old_log2);
/*
 * Return the size of a block: 2^log2_n paths, which forwarders read, then a home for each.
 * The home of a bucket is the member that last took the bucket as its share; the block has
 * 16 bits of the member's hash. The home stays while this member is gone, so the member
 * gets the bucket again.
 */
static inline size_t
group_block_bytes(unsigned int log2_n)
{
	return (sizeof(fib_path) + sizeof(uint16_t)) << log2_n;
}
/*
 * Fill the block `out` so that each member has m[].target of the 2^log2_n buckets. Keep as
 * many buckets of the block `old` (2^old_log2 buckets; NULL: none) as possible; the MTU
 * classes of its paths do not count. Targets change by at most 2 % of the share, if fewer
 * flows have to move because of that.
 */
void group_fill(fib_path *out, unsigned int log2_n, struct bucket_member *m, uint32_t n,
		const fib_path *old, unsigned int old_log2);
/*
 * Return the part of all flows, in 1/4096, that a change from the first word to the second
 * would move without need: from a member that stays in the group to another member. 0 if a
 * word has no buckets.
 */
uint32_t group_excess(uint64_t from, uint64_t to);

#endif
