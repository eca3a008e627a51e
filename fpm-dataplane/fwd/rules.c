/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rules: policy routing, a part of the lookup stage, for packets from interfaces that the
 * rules concern. These packets never take the fast path. [fwd-n]
 */
#include "fib/rules.h"

#include "base/inet.h"
#include "fwd/sid.h"
#include "fwd/vlan.h"

bool
fwd_rules_ask(const struct burst *b, unsigned int i, struct fib_rules_hit *hit)
{
	const struct fib *fib = b->fwd->fib;
	uint8_t family = b->family[i];
	const struct fib_rules *rules =
		fib_rules_concern(b->in, family) ? fib_rules(fib, family) : NULL;
	struct fib_rules_key key = {.main = b->fwd->tries,
				    .ip = burst_l3(b, i),
				    .room = burst_l3_room(b, i),
				    .ifindex = b->in->ifindex,
				    .vrf_ifindex = fib_rules_vrf_device(b->in),
				    .vrf = b->in->vrf,
				    .family = family};

	if (rules == NULL)
		return false;
	key.flow_hash = flow_hash(key.ip, key.room, family, fib->seed);
	if (burst_has_sid_table(b))
		fib_rules_table(fib, rules, &key, b->in->vrf, hit);
	else
		fib_rules_walk(fib, rules, &key, hit);
	return true;
}

void
fwd_lookup_rules(struct burst *b)
{
	for (unsigned int v = 0; v < 2; v++) {
		struct fwd_found *found = &b->found[v];
		struct fib_rules_hit hit;

		for (unsigned int k = 0; k < found->n; k++) {
			if (!fwd_rules_ask(b, found->at[k], &hit))
				break; /* this family has no rules */
			b->path[found->at[k]] = hit.path;
			found->group[k] = hit.group;
		}
	}
}
