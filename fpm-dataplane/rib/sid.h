/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Entries of fib->sid: one for each different action with its table or next hop. [rib]
 * Legs have references to entries. They give the references back by reclaim.h, so that an
 * entry is reused only when no forwarder can still read it.
 */
#ifndef RIB_SID_H
#define RIB_SID_H

#include <stdbool.h>
#include <stdint.h>

#include "base/srv6_words.h"
#include "rib/index.h"
#include "rib/stack.h"

struct next_hop;
struct rib;

struct rib_sids {
	struct rib_sid {
		uint8_t n;     /* words; 0: the entry is free */
		uint32_t refs; /* legs with this SID, and releases that wait in reclaim.h */
		uint32_t
			encap; /* End.B6.Encaps: entry of fib->encap for its policy; 0: none */
		uint32_t word[STACK_WORDS_MAX];
	} * v; /* by number, from 1 */
	uint32_t n, high, cap;
	uint32_t n_with_oif; /* entries that name the interface of their neighbor */
	struct fifo32 unused;
	struct hidx by_words;
	bool refused; /* an end point got no entry since the last one was freed */
};

/* Return true if the next hop is an end point, with or without an entry. */
bool hop_is_end_point(const struct rib *rib, const struct next_hop *hop);
/*
 * Return the entry of an end point, and add a reference to it. Write the entry if there is
 * none. Return 0 if the table is full: the kernel then gets the packets, or without
 * routes.through-kernel they are dropped as unsupported.
 */
uint32_t sid_get(struct rib *rib, const struct next_hop *hop);
/* Give a reference back. No forwarder may still use the entry because of it. */
void sid_put(struct rib *rib, uint32_t number);
/* Return the entry of a next hop; 0: it has none. */
uint32_t sid_find(const struct rib *rib, const struct next_hop *hop);
/* Return true if sid_get() would find or write an entry for the end point now. */
bool sid_is_available(const struct rib *rib, const struct next_hop *hop);
/* Give each entry the number of the VRF that has its table now, after VRFs changed. */
void sids_bind(struct rib *rib);
/* Give the entries that name a link its number now, after the link came or went. */
void sids_bind_link(struct rib *rib, uint32_t ifindex);
void sids_free(struct rib_sids *sids);

#endif
