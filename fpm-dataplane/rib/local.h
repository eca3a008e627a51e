/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Table local in the FIBs of VRFs. [rib]. In Linux the first rule looks up table local, and
 * the rule of VRFs (l3mdev) comes later. A match in table local ends the search, also if
 * the VRF has a longer prefix. So while the rules have this order, the trie of each VRF has
 * the prefixes of table local. A route of the VRF inside such a prefix has the slot that
 * stands for the type (RTN_*) of the route of table local. Thus forwarders still make only
 * one lookup.
 */
#ifndef RIB_LOCAL_H
#define RIB_LOCAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/prefix.h"
#include "rib/index.h"

struct kroute;
struct rib;
struct route;
struct vrf;

struct rib_locals {
	/* The rule of VRFs precedes table local, or no rule looks up local: IPv4, IPv6 */
	bool behind[2];
	/*
	 * Prefixes that some trie lacks, because memory was out. Number i + 1 of the index
	 * is left[i].
	 */
	struct prefix *left;
	uint32_t n_left, cap_left, next_left; /* next_left: index of the next retry */
	struct hidx left_index;
	uint64_t
		n_left_steps; /* prefixes that searches in `left` have compared, for tests */
	bool nomem;           /* W:commit.c a trie is not complete for lack of memory */
};

/*
 * Return the slot that the trie of `table` has for prefix `p`; 0: none. `r` is the route of
 * the table for the prefix, or NULL. Only VRFs of the kernel have prefixes of table local.
 */
uint32_t local_fib_slot(const struct rib *rib, uint32_t table, const struct prefix *p,
			const struct route *r);
/* Return true if table local hides `r`, a route of a VRF. */
bool local_hides(const struct rib *rib, const struct route *r);
/*
 * Return the route of table main and local whose record of table local decides for the
 * prefix in a VRF; NULL: none.
 */
const struct route *local_route_in(const struct rib *rib, const struct vrf *vrf,
				   const struct prefix *p);
void locals_free(struct rib *rib);
/* Return true if the route of table main has records of table local. */
bool local_has_records(const struct rib *rib, const struct route *r);
/* Stage a prefix of table local in each VRF. */
void locals_stage(struct rib *rib, const struct prefix *p);
/*
 * Stage the prefixes of table local again that have the type throw and are inside `of`,
 * because their slots depend on the routes that cover them. Do so in `vrf`, or in all VRFs
 * if `vrf` is NULL.
 */
void locals_stage_thrown(struct rib *rib, struct vrf *vrf, const struct prefix *of);
/*
 * Return the next VRF of the kernel after number *at, which is 0 before the first call.
 * NULL: there is none.
 */
struct vrf *local_next_vrf(const struct rib *rib, uint32_t *at);
/*
 * Stage all prefixes of table local in a FIB: add them to the FIB of a VRF, or remove them
 * from a FIB for rules. Return false without memory.
 */
bool local_fill(struct rib *rib, struct vrf *vrf);
/* Obey a new order of the rules. */
void locals_set_behind(struct rib *rib, unsigned int family6, bool behind);
/*
 * Fill the tries of new VRFs, and try again where there was no memory. Call this before a
 * commit. Return false if a trie is not complete.
 */
bool locals_complete(struct rib *rib);

/*
 * If the record of table local refuses packets, set fib->local_refuses6. Forwarders read it
 * for end points of SRv6 that look up a table without table local.
 */
void local_note_refusal(struct rib *rib, const struct kroute *kr);

#endif
