/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Give each SID of a table with a FIB a number, by which forwarders count its packets; see
 * fib/sid_number.h. [rib]. A number is used again only after a grace period.
 */
#ifndef RIB_SID_NUMBER_H
#define RIB_SID_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "rib/index.h"

struct rib;
struct route;
struct sid_counters;

struct rib_sid_numbers {
	uint32_t of_len[129]; /* SIDs by the length of their prefix */
	uint32_t n_not_main;  /* SIDs of tables other than main */
	struct fifo32 unused;
	bool full_said; /* the log has that no number was left */
};

/*
 * Give the route a number if its slot has an end point of SRv6, or take its number away if
 * the slot has none. Routes of tables without a FIB and of families other than IPv6 never
 * have a number.
 */
void sid_number_settle(struct rib *rib, const struct route *r);
/*
 * Free the numbers of SIDs whose tables have lost their FIB. Called before a commit ends.
 */
void sid_numbers_end_tables(struct rib *rib);
/* Take a number back. It may be used again. */
void sid_number_put(struct rib *rib, uint32_t number);
/* Read the counters of a SID. */
void sid_number_count(const struct rib *rib, uint32_t number, struct sid_counters *sum);

#endif
