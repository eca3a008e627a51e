/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vteps: the VTEPs of the neighbors behind VXLANs. The destination that an ICMP error
 * quotes is checked by one lookup, even if it is made up. [punt]
 */
#ifndef PUNT_VTEPS_H
#define PUNT_VTEPS_H

#include <stdbool.h>
#include <stdint.h>

#include "fib/fib.h"

#define VTEP_SCANS_MAX 8u /* scans a second; a scan reads a word of each adjacency */

/* An address of a VTEP. Family 0: the place is free. */
struct punt_vtep {
	struct ipaddr addr;
	uint16_t vrf;
	uint8_t family;
};

/* A hash table with open addressing; all zero at first. */
struct punt_vteps {
	struct punt_vtep *place;
	uint32_t mask;        /* number of places less one */
	unsigned int n_scans; /* scans in this second */
};

/*
 * Return true if a neighbor behind a VXLAN has this VTEP. A VTEP stays known for a second
 * at most after its last neighbor was removed. A new VTEP is known after a second at most,
 * even if other addresses are looked up meanwhile.
 */
bool punt_vtep_is_known(struct punt_vteps *v, const struct fib *fib,
			const struct punt_vtep *vtep);

/* Once a second: allow new scans. */
void punt_vteps_age(struct punt_vteps *v);

void punt_vteps_free(struct punt_vteps *v);

#endif
