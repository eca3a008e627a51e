/* SPDX-License-Identifier: BSD-3-Clause */
/* Find the end of a replay. [rib] */
#ifndef RIB_REPLAY_H
#define RIB_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

struct rib;

/* Return true if the replay of table main is over and no event is queued. */
bool replay_main_is_over(const struct rib *rib);
/* Return true if the replay of VRFs is over and no event is queued. */
bool replay_vrfs_are_over(const struct rib *rib);
/* Return true if zebra is connected and its replays of main and of VRFs are over. */
bool replay_is_complete(const struct rib *rib);
/*
 * Return the time (CLOCK_MONOTONIC, ms) until which nothing is swept after a restart of
 * zebra; 0: zebra did not restart.
 */
uint64_t replay_hold_ms(const struct rib *rib);
/*
 * Return the state of the replay of main, or of VRFs: its phase (a word of
 * dist/openapi.yaml), or the time until its sweep in ms (-1: not known).
 */
const char *session_phase(const struct rib *rib);
const char *session_vrf_phase(const struct rib *rib);
int64_t sweep_in_ms(const struct rib *rib, uint64_t now_ms);
int64_t sweep_vrfs_in_ms(const struct rib *rib, uint64_t now_ms);

#endif
