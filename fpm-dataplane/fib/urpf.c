/* SPDX-License-Identifier: BSD-3-Clause */
/* urpf: find the reverse path of one packet. No thread of its own. */
#include "fib/urpf.h"

#include "base/inet.h"
#include "fib/rules.h"

/* Return true if `ifidx` is the ingress interface, or with `by_vrf` belongs to its VRF. */
static bool
egress_is_back(const struct fib *fib, const struct fib_iface *in, uint16_t ifidx,
	       bool by_vrf)
{
	const struct fib_iface *out;

	if (ifidx == in->ifidx)
		return true;
	if (!by_vrf || in->vrf == 0 || ifidx == FIB_EGRESS_OTHER)
		return false;
	if ((ifidx & FIB_EGRESS_VRF) != 0)
		return (ifidx & ~FIB_EGRESS_VRF) == in->vrf;
	out = fib_iface(fib, ifidx);
	return out != NULL && out->vrf == in->vrf;
}

enum fib_back
fib_egress_judge(const struct fib *fib, const struct fib_iface *in, uint64_t egress,
		 bool by_vrf)
{
	const struct fib_egress *block =
		(egress & FIB_EGRESS_BLOCK) != 0 ? fib_egress_block(egress) : NULL;
	uint32_t n = block != NULL ? block->n : FIB_EGRESS_WORD;

	if (egress == 0)
		return FIB_BACK_NONE;
	for (uint32_t i = 0; i < n; i++) {
		uint16_t ifidx =
			block != NULL ? block->ifidx[i] : (uint16_t)(egress >> i * 16);

		if (ifidx != 0 && egress_is_back(fib, in, ifidx, by_vrf))
			return FIB_BACK_HERE;
	}
	return FIB_BACK_OTHER;
}

/*
 * Copy the headers of a packet with the addresses exchanged. fib_rules_walk() exchanges the
 * ports. Returns the number of octets.
 */
static unsigned int
packet_turn(const struct fib_back_key *key, uint8_t *out, unsigned int size)
{
	unsigned int n = key->room < size ? key->room : size;
	unsigned int octets = family_octets(key->family), src = key->family == 4 ? 12 : 8;

	memcpy(out, key->ip, n);
	memcpy(out + src, key->ip + src + octets, octets);
	memcpy(out + src + octets, key->ip + src, octets);
	return n;
}

/*
 * Look up the source by the policy rules. As in Linux, the egress interface of the packet
 * is the ingress interface for the rules.
 */
static uint32_t
group_by_rules(const struct fib *fib, const struct fib_rules *rules,
	       const struct fib_back_key *key)
{
	uint8_t turned[128];
	unsigned int room = packet_turn(key, turned, sizeof(turned));
	struct fib_rules_key ask = {.main = key->main,
				    .ip = turned,
				    .room = room,
				    .ifindex = key->oif,
				    .vrf_ifindex = fib_rules_vrf_device(key->in),
				    .vrf = key->in->vrf,
				    .family = key->family,
				    .back = true,
				    .no_ports = key->no_ports,
				    .proto = key->proto};
	struct fib_rules_hit hit;

	fib_rules_walk(fib, rules, &ask, &hit);
	return hit.group;
}

static uint32_t
trie_group(const struct poptrie *pt, uint8_t family, const uint8_t *src)
{
	return family == 4 ? poptrie4_lookup(pt, get_be32(src)) : poptrie6_lookup(pt, src);
}

uint32_t
fib_back_group(const struct fib *fib, const struct fib_back_key *key)
{
	const struct fib_rules *rules = fib_rules(fib, key->family);
	const uint8_t *src = key->ip + (key->family == 4 ? 12 : 8);
	uint16_t vrf = key->in->vrf;
	const struct poptrie *pt;
	uint32_t group;

	if (rules != NULL)
		return group_by_rules(fib, rules, key);
	if (vrf == 0)
		return trie_group(fib_trie(key->main, key->family), key->family, src);
	pt = key->family == 4 ? fib_vrf_pt4(fib, vrf) : fib_vrf_pt6(fib, vrf);
	if (pt == NULL)
		return POPTRIE_NONE;
	group = trie_group(pt, key->family, src);
	/* The path of a group without a route is the same for all flows. */
	if (!path_is_no_route(fib_group_path(fib, group, 0)) ||
	    !atomic_load_explicit(&fib->vrfs_told, memory_order_relaxed))
		return group;
	return trie_group(fib_trie(key->main, key->family), key->family, src);
}
