/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Entries of fib->encap: one for each pair of a label stack and the adjacency or the tunnel
 * to which packets with these labels go, and one for each headend of SRv6. [rib]
 */
#ifndef RIB_ENCAP_H
#define RIB_ENCAP_H

#include <stdbool.h>
#include <stdint.h>

#include "fib/fib.h"
#include "rib/index.h"

struct rib;

struct encap {
	uint32_t refs;  /* legs that use the entry; 0: free */
	uint32_t stack; /* number of the stack (stack.h) */
};

struct rib_encaps {
	struct encap *v; /* by number, from 1 */
	uint32_t high, cap, n;
	uint32_t n_headends; /* part of n */
	bool refused;        /* a next hop found no entry */
	struct fifo32 unused;
	struct hidx by_key;
};

#define ENCAP_HEADEND PATH(PATH_VRF, 0) /* `next` of a headend, which leads to a lookup */

/*
 * Take a reference to the entry, and write it if it is new. Return 0 when limits.encaps
 * entries are in use.
 *
 * next  an adjacency, a tunnel (PATH_ONLINK), or ENCAP_HEADEND
 */
uint32_t encap_get(struct rib *rib, fib_path next, uint32_t stack);
/* Return the entry if there is one, without a reference; 0: none. */
uint32_t encap_find(const struct rib *rib, fib_path next, uint32_t stack);
/* Give a reference back. No forwarder may still use the entry by a path of the caller. */
void encap_put(struct rib *rib, uint32_t number);
bool encaps_are_full(const struct rib *rib);
void encaps_free(struct rib_encaps *encaps);

#endif
