/* SPDX-License-Identifier: BSD-3-Clause */
/* Commits: what has changed is published to forwarders. [rib]. */
#ifndef RIB_COMMIT_H
#define RIB_COMMIT_H

#include <stdbool.h>
#include <stdint.h>

struct rib;

/* What waits for the next commit, beside dirty slots and words. */
struct rib_pending {
	bool staged[2];        /* tries of main, IPv4 and IPv6 */
	bool failed;           /* the last one, for a lack of memory: tries are behind */
	uint32_t n_events;     /* since the last commit */
	uint64_t words_before; /* count.word_writes at the last commit */
	uint64_t oldest_rx_ms; /* of those: when fpm handed the first over; 0: none */
};

void rib_commit(struct rib *rib);
/* Teardown: run all lists of reclaim.h, whether or not their grace period is over. */
void commit_reclaim_all(struct rib *rib);

#endif
