/* SPDX-License-Identifier: BSD-3-Clause */
/* Publish changes to forwarders. [rib] */
#ifndef RIB_COMMIT_H
#define RIB_COMMIT_H

#include <stdbool.h>
#include <stdint.h>

struct rib;

/* Changes that wait for the next commit, in addition to dirty slots and words. */
struct rib_pending {
	bool staged[2];        /* in tries of main, IPv4 and IPv6 */
	bool failed;           /* the last commit lacked memory: a trie is out of date */
	uint32_t n_events;     /* since the last commit */
	uint64_t words_before; /* count.word_writes at the last commit */
	/* time when fpm handed over the first of these events; 0: none */
	uint64_t oldest_rx_ms;
};

void rib_commit(struct rib *rib);
/*
 * Reclaim all lists of reclaim.h without waiting for their grace period, before rib is
 * freed.
 */
void commit_reclaim_all(struct rib *rib);

#endif
