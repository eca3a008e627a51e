/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions of zebra: one generation for each connection. [rib]. */
#ifndef RIB_SESSION_H
#define RIB_SESSION_H

#include <stdbool.h>
#include <stdint.h>

struct fpm_event;
struct rib;

struct rib_session {
	uint32_t gen, nl_pid;
	bool connected;
	bool restarted;      /* another zebra than the one before */
	bool replaying;      /* of main: its end is not known yet */
	bool vrfs_replaying; /* of all tables: theirs is not known yet */
	bool sweeping; /* end known, stale routes are being taken out: main's, then VRFs' */
	bool sentinel; /* seen in this generation, at ... */
	uint64_t sentinel_ms, up_ms, last_event_ms, done_ms;
	uint64_t last_other_ms; /* zebra spoke of a route of another table than main */
	uint32_t n_before;      /* routes of zebra when it came: to be confirmed or swept */
	uint64_t n_events, n_routes; /* the sentinel not counted */
	uint64_t swept, swept_vrf;   /* the latter are not in n_before */
	uint32_t sweep_at;
};

void session_up(struct rib *rib, uint32_t gen, uint32_t nl_pid);
void session_down(struct rib *rib);
void session_event(struct rib *rib, const struct fpm_event *ev);

#endif
