/* SPDX-License-Identifier: BSD-3-Clause */
/* Adjacencies of next hops. [rib] */
#ifndef RIB_ADJ_H
#define RIB_ADJ_H

#include <stdbool.h>
#include <stdint.h>
#include <urcu/list.h>

#include "base/prefix.h"
#include "rib/index.h"

struct link;
struct msg_adj;
struct msg_bfd_hop;
struct rib;

enum adj_state { ADJ_FREE, ADJ_WATCHED, ADJ_UNWATCHED };

struct adj {
	uint32_t ifindex;
	uint32_t refs;
	uint8_t family;
	uint8_t state;
	bool alive;    /* resolved, or being resolved */
	bool resolved; /* the MAC address is known */
	bool pruned;   /* BFD has found its address or its MAC dead: prune.h */
	bool asked;    /* neigh has not answered MSG_ADJ_WATCH yet */
	struct ipaddr addr;
	uint64_t mac; /* the last known MAC address of an IPv6 neighbor; 0: none yet */
	struct cds_list_head legs;
};

struct rib_adjs {
	struct adj *v; /* fib->adj_hosts entries */
	bool freed;    /* a number became free in this round */
	uint32_t high, n;
	uint32_t n_asked;     /* adjacencies that a commit waits for */
	uint64_t asked_ms;    /* time since which n_asked is not 0 */
	struct fifo32 unused; /* the number that was freed first is used first */
	struct hidx by_key;
	struct hidx by_mac; /* adjacencies with a `mac` */
};

/* Return true if the adjacency exists, or if there is room for it. */
bool adj_is_available(const struct rib *rib, const struct link *link, uint8_t family,
		      const struct ipaddr *addr);
/* Return the number of an adjacency that is in use; 0: none. */
uint32_t adj_number(const struct rib *rib, const struct link *link, uint8_t family,
		    const struct ipaddr *addr);
uint32_t adj_get(struct rib *rib, const struct link *link, uint8_t family,
		 const struct ipaddr *addr);
void adj_put(struct rib *rib, uint32_t number);
/*
 * Mark the adjacencies of a next hop as dead or alive, after prune_event() has taken the
 * message of thread bfd.
 */
void adjs_prune(struct rib *rib, const struct msg_bfd_hop *m);
void adj_event_state(struct rib *rib, const struct msg_adj *m);
void adj_event_freed(struct rib *rib, const struct msg_adj *m);
void adj_event_ready(struct rib *rib, const struct msg_adj *m);
/* Return true while the commit must wait for neigh's answer about a new adjacency. */
bool adj_is_awaited(const struct rib *rib);
/* Return true if neither the kernel nor BFD has found the neighbor of an adjacency dead. */
bool adj_is_usable(const struct rib *rib, uint32_t number);
void adjs_free(struct rib_adjs *adjs);

#endif
