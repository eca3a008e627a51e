/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory and numbers that readers may still use: one list for each commit, and one grace
 * period for each list. [rib]. Any file may add to the open list; only commit.c closes it
 * and decides what becomes of its contents.
 */
#ifndef RIB_RECLAIM_H
#define RIB_RECLAIM_H

#include <stdbool.h>
#include <stdint.h>
#include <urcu/list.h>
#include <urcu/urcu-qsbr.h>

#include "fib/fib.h"
#include "rib/index.h"

struct msg_feedback;
struct poptrie;
struct poptrie_retired;
struct rib;
struct vrf_retired;

/* The objects that a commit no longer publishes. They are freed a grace period later. */
struct reclaim {
	struct rcu_head rcu;
	struct cds_list_head node; /* in rib->reclaims.list, after call_rcu */
	struct rib *rib;
	void (*run)(void *rib, void *reclaim); /* after the grace period */
	uint64_t since_ns;                     /* CLOCK_MONOTONIC of call_rcu */
	struct poptrie_retired *retired;       /* chained by user[0]; user[1] is the trie */
	struct vec32 slots;
	struct vec32 sids;                     /* numbers of SIDs */
	struct vec32 adjs, encaps, end_points; /* one reference each */
	struct vrf_retired *vrfs;
	struct fib_rules *rules[2]; /* replaced lists */
	/*
	 * rib_rules.n_rounds at the time when lists of rules, or FIBs that they name, were
	 * replaced; 0: they were not
	 */
	uint64_t rules_round;
	struct msg_feedback *feedback, **feedback_end;
	void **blocks;
	uint32_t n_blocks, cap_blocks;
};

struct rib_reclaims {
	struct reclaim *open; /* of the next commit; NULL: empty */
	struct cds_list_head list;
	uint32_t n; /* in the list */
};

/* Return the open list. */
struct reclaim *reclaim_open(struct rib *rib);
/* Add nodes and leaves that a trie has replaced. */
void reclaim_nodes(struct rib *rib, struct poptrie *pt, struct poptrie_retired *r);
void reclaim_block(struct rib *rib, void *block);
/* Close the open list and call `run` in the rib thread after the grace period. */
void reclaim_start(struct rib *rib, void (*run)(void *rib, void *reclaim));
/* Free the parts that need no other file: trie nodes and blocks. */
void reclaim_memory(struct reclaim *p);
/* If reclaim_start() has put `p` on the list, take it off and record how long it waited. */
void reclaim_finish(struct rib *rib, struct reclaim *p);
void reclaim_free(struct reclaim *p);

#endif
