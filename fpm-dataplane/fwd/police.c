/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * May a packet go to the host? Asked here, before the ring, so that what is refused costs
 * the forwarder two loads and the host nothing.                                  [fwd-n]
 */
#include "base/inet.h"
#include "fwd/burst.h"

/*
 * Whose share of the class is it? A switch has one MAC in all VLANs of its trunk, but is a
 * neighbour in each; VRFs may have the same addresses.
 */
static uint32_t
source(const struct burst *b, unsigned int i, enum punt_key key)
{
	uint64_t seed = b->fwd->fib->seed;

	if (key == KEY_MAC || b->family[i] == 0)
		return policer_source(seed_of(seed, b->ifidx), burst_l2(b, i) + 6, 6);
	seed = seed_of(seed, b->in->vrf);
	if (b->family[i] == 4)
		return policer_source(seed, burst_l3(b, i) + 12, 4);
	return policer_source(seed, burst_l3(b, i) + 8, key == KEY_NET ? 8 : 16);
}

/* The neighbour that a packet waits for: its next hop, or its destination on the link. */
static uint32_t
neighbour(const struct burst *b, unsigned int i)
{
	uint32_t index = path_index(b->path[i]);
	uint64_t seed = b->fwd->fib->seed;

	if (path_kind(b->path[i]) == PATH_ADJ)
		return policer_source(seed, (const uint8_t *)&index, sizeof(index));
	seed = seed_of(seed, index);
	return b->family[i] == 4 ? policer_source(seed, burst_l3(b, i) + 16, 4)
				 : policer_source(seed, burst_l3(b, i) + 24, 16);
}

bool
fwd_police(struct burst *b, unsigned int i, enum punt_class class)
{
	struct class_counters *count = &b->fwd->count->class[class];
	uint32_t key = source(b, i, punt_class_info[class].key);

	/* Nobody may use up the room of all who wait, neither as sender nor as target. */
	if (class == CLASS_glean &&
	    !policer_share_take(class, neighbour(b, i), burst_now(b))) {
		counter_add(&count->over_share, 1);
		return false;
	}
	switch (policer_take(class, key, burst_now(b))) {
	case POLICER_PASS:
		return true;
	case POLICER_SOURCE:
		counter_add(&count->over_share, 1);
		return false;
	default:
		counter_add(&count->policed, 1);
		return false;
	}
}
