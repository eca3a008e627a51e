/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Destination to path: one bulk lookup a family, then the choice among equals.   [fwd-n]
 */
#include "base/inet.h"
#include "fwd/burst.h"

/* Path of a packet whose group is known; the hash is computed only where it matters. */
static inline fib_path
choose(const struct burst *b, unsigned int i, uint32_t group)
{
	const struct fib *fib = b->fwd->fib;
	uint64_t w = atomic_load_explicit(&fib->group[group], memory_order_consume);
	uint32_t hash = 0;

	if (group_word_is_block(w))
		hash = flow_hash(burst_l3(b, i), burst_l3_room(b, i), b->family[i],
				 fib->seed);
	return group_word_path(w, hash);
}

void
fwd_lookup(struct burst *b)
{
	const struct fib *fib = b->fwd->fib;
	struct fwd_found *v4 = &b->found[0], *v6 = &b->found[1];
	uint32_t dst4[BURST_MAX];
	const uint8_t *dst6[BURST_MAX];
	unsigned int n4 = 0, n6 = 0;

	for (unsigned int i = 0; i < b->n; i++) {
		if (b->verdict[i] != VERDICT_GO)
			continue;
		if (b->family[i] == 4) {
			dst4[n4] = get_be32(burst_l3(b, i) + 16);
			v4->at[n4++] = (uint8_t)i;
		} else {
			dst6[n6] = burst_l3(b, i) + 24;
			v6->at[n6++] = (uint8_t)i;
		}
	}
	v4->n = n4;
	v6->n = n6;
	if (n4 > 0) {
		poptrie4_lookup_bulk(fib->pt4, dst4, v4->group, n4);
		for (unsigned int k = 0; k < n4; k++)
			b->path[v4->at[k]] = choose(b, v4->at[k], v4->group[k]);
	}
	if (n6 > 0) {
		poptrie6_lookup_bulk(fib->pt6, dst6, v6->group, n6);
		for (unsigned int k = 0; k < n6; k++)
			b->path[v6->at[k]] = choose(b, v6->at[k], v6->group[k]);
	}
}
