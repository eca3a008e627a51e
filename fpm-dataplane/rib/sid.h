/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Entries of fib->sid: one for each different action with its table or next hop. [rib]. Entries
 * are never freed: there are as many as VRFs, neighbors and policies that SIDs have ever named.
 */
#ifndef RIB_SID_H
#define RIB_SID_H

#include <stdbool.h>
#include <stdint.h>

#include "base/srv6.h"
#include "rib/index.h"
#include "rib/stack.h"

struct next_hop;
struct rib;

struct rib_sids {
	struct rib_sid {
		uint8_t n;
		uint32_t encap; /* of the policy of End.B6.Encaps; 0: none */
		uint32_t word[STACK_WORDS_MAX];
	} * v; /* by number, from 1 */
	uint32_t n, cap;
	uint32_t n_with_oif; /* entries that name the interface of their neighbor */
	struct hidx by_words;
	bool full_said;
};

/*
 * Write an entry for the next hop if it is an end point and has none. If the table is full,
 * the end point gets no entry: the kernel gets its packets, or without
 * routes.through-kernel they are unsupported.
 */
void sid_add(struct rib *rib, const struct next_hop *hop);
/* Return the entry of a next hop; 0: it has none. */
uint32_t sid_find(const struct rib *rib, const struct next_hop *hop);
/* Give each entry the number of the VRF that has its table now, after VRFs changed. */
void sids_bind(struct rib *rib);
/* Give the entries that name a link its number now, after the link came or went. */
void sids_bind_link(struct rib *rib, uint32_t ifindex);
void sids_free(struct rib_sids *sids);

#endif
