/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fingerprint of a RIB, see rib_print.h.
 */
#include "rib_print.h"

#include "fib/label.h"
#include "fib/sid_entry.h"

#define N_HASH 4096u /* the largest block of buckets */

static uint64_t
mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 29;
}

/*
 * Hash a path that leads to no neighbor. The number of an end point of SRv6 depends on the
 * end points before it.
 */
static uint64_t
end_print(const struct rig *g, fib_path path)
{
	const struct fib_sid *e = &g->fib->sid[path_index(path)];
	uint64_t h;

	if (path_kind(path) != PATH_LOCAL || path_index(path) == 0)
		return mix(path, 1);
	h = mix(mix(e->action, e->flavors), e->block_bits * 256u + e->node_bits);
	h = mix(mix(h, e->vrf), e->ifidx);
	return mix(mix(h, ipaddr_hash(&e->hop, e->family)), path_kind(e->policy));
}

/* Hash the paths of a slot as a set, without order and shares. */
static uint64_t
slot_print(const struct rig *g, uint32_t number)
{
	fib_path seen[300];
	unsigned int n = 0;
	uint64_t sum = 0;

	for (unsigned int i = 0; i < N_HASH; i++) {
		fib_path path = fib_group_path(g->fib, number, i << 20);
		const struct fib_adj *a = &g->fib->adj[path_index(path)];
		unsigned int at = n;
		uint64_t labels = 0;

		while (at > 0 && seen[at - 1] != path)
			at--;
		if (at > 0)
			continue;
		assert_true(n < 300);
		seen[n++] = path;
		if (path_kind(path) == PATH_ENCAP && !path_is_unsupported(path)) {
			const struct fib_encap *e = fib_encap(g->fib, path);

			for (unsigned int k = 0; k < e->n; k++)
				labels = mix(labels, encap_label(e, k));
			a = &g->fib->adj[path_index(encap_next(e))];
		}
		sum += path_kind(path) == PATH_ADJ || path_kind(path) == PATH_ENCAP
			       ? mix(mix(ipaddr_hash(&a->addr, a->family), labels),
				     a->ifidx | (uint64_t)path_mtu_class(path) << 16)
			       : end_print(g, path);
		if (!group_word_is_block(g->fib->group[number]))
			break;
	}
	return sum;
}

static uint64_t
routes_print(const struct rig *g, const struct routes *t)
{
	uint64_t sum = 0;

	for (uint32_t i = 1; i <= t->high; i++) {
		const struct route *r = route_at(t, i);
		struct prefix p = route_prefix(r);
		uint64_t h;
		uint32_t slot = route_effective(r);

		if (r->family == 0)
			continue;
		h = mix(prefix_hash(&p, 1), r->table);
		h = mix(h, r->zslot != 0 ? r->protocol * 256u + r->rtm_type : 0);
		h = mix(h, slot_at(&g->rib->slots, slot)->nhid);
		h = mix(h, r->kslot != 0);
		h = mix(h, slot_print(g, slot));
		if (r->table == RIB_TABLE_MAIN)
			assert_int_equal(r->family == 4 ? poptrie_exact(g->fib->copy[0].pt4,
									r->octet, r->len)
							: poptrie_exact(g->fib->copy[0].pt6,
									r->octet, r->len),
					 slot);
		sum += h;
	}
	return sum;
}

uint64_t
rig_fingerprint(const struct rig *g)
{
	uint64_t sum = routes_print(g, &g->rib->tables.main) +
		       routes_print(g, &g->rib->tables.other);

	for (uint32_t i = 1; i <= g->rib->nhs.high; i++) {
		const struct nh *nh = g->rib->nhs.v[i];
		uint64_t h, members = 0;

		if (nh == NULL)
			continue;
		h = mix(mix(nh->id, nh->known), nh->absent * 2u + nh->is_group);
		if (nh->known && !nh->is_group)
			h = mix(h, mix(ipaddr_hash(&nh->hop.gw, nh->hop.gw_family),
				       nh->hop.ifindex * 16u + nh->hop.encap));
		for (uint32_t j = 0; j < nh->n_member; j++)
			members += mix(nh->member[j].nh->id, nh->member[j].weight);
		sum += mix(h, members);
	}
	return sum;
}
