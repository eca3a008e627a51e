/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The numbers of SIDs, by which packets are counted: struct sid_counters. End points with
 * the same action share an entry of fib->sid, so the path of a packet does not tell its
 * SID. The destination does: each SID of a table that has a FIB has a number, found by its
 * table and its prefix. The key is the table, not the number of the FIB, because the views
 * of a table (rib/view.c) have the same SIDs as the table.
 */
#ifndef FIB_SID_NUMBER_H
#define FIB_SID_NUMBER_H

#include "fib/fib.h"

#define SID_BUCKETS 16384u

struct fib_sid_number {
	struct ipaddr addr; /* W:rib  before the number is published */
	uint32_t table;     /* W:rib  before the number is published */
	/* W:rib  VRF of the table. 0: main; FIB_VRF_NONE: only rules name the table */
	_Atomic uint16_t vrf;
	_Atomic uint8_t len;   /* W:rib  of the prefix; 0: no SID has the number */
	_Atomic uint32_t next; /* W:rib  in the same bucket; 0: the last */
	struct sid_counters
		base; /* W:rib  before publication: counts that earlier SIDs left */
};

struct fib_sid_numbers {
	_Atomic uint64_t lens[2];            /* W:rib  bit n - 1: a SID has n bits */
	_Atomic uint32_t n_not_main;         /* W:rib  SIDs of other tables than main */
	_Atomic uint32_t high;               /* W:rib  the highest number so far */
	_Atomic uint32_t first[SID_BUCKETS]; /* W:rib  number; 0: none */
	struct fib_sid_number of[SIDS_MAX];  /* by number, from 1 */
};

/* Return the bucket of a SID. `seed`: fib->seed. */
static inline uint32_t
sid_bucket(uint64_t seed, uint32_t table, const struct ipaddr *addr, uint8_t len)
{
	return (uint32_t)(ipaddr_hash(addr, seed ^ ((uint64_t)table << 8 | len)) %
			  SID_BUCKETS);
}

/*
 * Return the number of the SID with this prefix in a table; 0: none. [RCU reader]
 */
uint32_t fib_sid_number_of(const struct fib *fib, uint32_t table, const struct ipaddr *addr,
			   uint8_t len);

/*
 * Return the number of the SID that a packet to `dst` (16 octets) is for, if its route in
 * `table` is the route of a SID; 0: there is no such number. [RCU reader]
 */
uint32_t fib_sid_number_find(const struct fib *fib, uint32_t table, const uint8_t *dst);

/* Return a number's prefix; its length is 0 if no SID has the number. [RCU reader] */
struct prefix fib_sid_number_prefix(const struct fib *fib, uint32_t number);

#endif
