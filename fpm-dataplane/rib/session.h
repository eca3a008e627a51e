/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions of zebra: one generation for each connection. [rib] */
#ifndef RIB_SESSION_H
#define RIB_SESSION_H

#include <stdbool.h>
#include <stdint.h>

struct fpm_event;
struct rib;

struct rib_session {
	uint32_t gen, nl_pid;
	bool connected;
	bool restarted;      /* the zebra is another process than before */
	bool replaying;      /* table main is replayed: the end is not known yet */
	bool vrfs_replaying; /* all tables are replayed: the end is not known yet */
	bool sweeping; /* the end is known, and the sweep runs: of main, then of VRFs */
	bool sentinel; /* it was received in this generation, at sentinel_ms */
	uint64_t sentinel_ms, up_ms, last_event_ms, done_ms;
	uint64_t last_other_ms; /* when zebra last mentioned another table than main */
	uint32_t n_before;      /* stale routes at the start, to be confirmed or swept */
	uint64_t n_events, n_routes; /* n_routes: without the sentinel */
	uint64_t swept, swept_vrf;   /* swept_vrf is not part of n_before */
	uint32_t sweep_at;           /* next place of the sweep (tables_walk_at()) */
};

void session_up(struct rib *rib, uint32_t gen, uint32_t nl_pid);
void session_down(struct rib *rib);
void session_event(struct rib *rib, const struct fpm_event *ev);

#endif
