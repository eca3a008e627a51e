/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists of next hops that do not belong to a slot yet: built from events of zebra or the
 * kernel, or from a checkpoint, then sorted and compared. [rib]. This file does not use
 * struct rib.
 */
#include "rib/nh_list.h"

#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "fib/rules.h"
#include "rib/index.h"

bool
next_hops_agree(const struct next_hop *a, const struct next_hop *b)
{
	struct next_hop other = *b;

	other.dead = a->dead;
	return memcmp(a, &other, sizeof(other)) == 0;
}

void
next_hop_special(struct next_hop *hop, enum path_kind kind)
{
	memset(hop, 0, sizeof(*hop));
	hop->kind = (uint8_t)kind;
}

void
next_hop_from_fpm(struct next_hop *hop, const struct fpm_hop *from)
{
	memset(hop, 0, sizeof(*hop));
	hop->ifindex = from->ifindex;
	hop->weight = from->weight == 0 ? 1 : from->weight;
	hop->gw_family = from->gw_family;
	hop->encap = from->encap;
	hop->onlink = from->onlink;
	if (from->encap == HOP_SEG6)
		hop->refusal = from->refusal;
	if (from->gw_family != 0)
		hop->gw = from->gw;
	if (from->gw_family == 0 && from->ifindex == 0 && from->encap == HOP_PLAIN)
		next_hop_special(hop, PATH_UNRESOLVED);
}

void
nh_list_clear(struct nh_list *hops)
{
	hops->n = 0;
	hops->unresolved = false;
}

bool
nh_list_set_type(struct nh_list *hops, uint8_t rtm_type)
{
	static const uint8_t kind[] = {
		[RTN_LOCAL] = PATH_LOCAL,
		[RTN_ANYCAST] = PATH_LOCAL,
		[RTN_BROADCAST] = PATH_BCAST,
		[RTN_BLACKHOLE] = PATH_BLACKHOLE,
		[RTN_UNREACHABLE] = PATH_UNREACHABLE,
		[RTN_PROHIBIT] = PATH_PROHIBIT,
		[RTN_THROW] = PATH_THROW,
	};

	nh_list_clear(hops);
	if (rtm_type >= sizeof(kind) || kind[rtm_type] == PATH_NONE)
		return false;
	next_hop_special(nh_list_push(hops), (enum path_kind)kind[rtm_type]);
	hops->v[0].vrf_subnet =
		kind[rtm_type] == PATH_LOCAL || kind[rtm_type] == PATH_BCAST;
	return true;
}

bool
nh_list_set_local_type(struct nh_list *hops, uint8_t rtm_type)
{
	if (!nh_list_set_type(hops, rtm_type))
		return false;
	hops->v[0].vrf_subnet = path_refuses((enum path_kind)hops->v[0].kind);
	return true;
}

struct next_hop *
nh_list_push(struct nh_list *hops)
{
	if (hops->n == hops->cap) {
		hops->cap = hops->cap == 0 ? 16 : hops->cap * 2;
		hops->v = mem_or_abort(realloc(hops->v, hops->cap * sizeof(*hops->v)));
	}
	return &hops->v[hops->n++];
}

static int
next_hop_order(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct next_hop));
}

void
nh_list_sort(struct nh_list *hops)
{
	if (hops->n > 1)
		qsort(hops->v, hops->n, sizeof(*hops->v), next_hop_order);
}

void
nh_list_set_mtu(struct nh_list *hops, uint16_t mtu_class)
{
	for (uint32_t i = 0; i < hops->n; i++)
		hops->v[i].mtu_class = mtu_class;
}

uint64_t
nh_list_hash(const struct nh_list *hops, uint64_t seed)
{
	uint64_t h = seed + hops->n;

	for (uint32_t i = 0; i < hops->n; i++) {
		const struct next_hop *hop = &hops->v[i];

		h = ipaddr_hash(&hop->gw,
				h ^ ((uint64_t)hop->ifindex << 32 | hop->weight)) +
		    ((uint64_t)hop->stack << 43 | (uint64_t)hop->mtu_class << 32 |
		     (uint64_t)hop->kind << 24 | (uint64_t)hop->encap << 16 |
		     (uint64_t)hop->onlink << 8 | hop->gw_family);
	}
	return h ^ h >> 32;
}

bool
nh_list_needs_no_neighbor(const struct nh_list *hops)
{
	return hops->n == 1 && hops->v[0].gw_family == 0;
}
