/* SPDX-License-Identifier: BSD-3-Clause */
/* Find the end of a replay, and sweep the routes that it did not confirm. [rib] */
#ifndef RIB_SWEEP_H
#define RIB_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

struct rib;

bool sweep_round(struct rib *rib); /* return true if more is to be done at once */
/* Return true if zebra is connected and its replays of main and of VRFs are over. */
bool replay_vrfs_is_over(const struct rib *rib);
/*
 * Return the state of the replay of main, or of VRFs: its phase (a word of
 * dist/openapi.yaml), or the time until its sweep in ms (-1: not known).
 */
const char *session_phase(const struct rib *rib);
const char *session_vrf_phase(const struct rib *rib);
int64_t sweep_in_ms(const struct rib *rib, uint64_t now_ms);
int64_t sweep_vrfs_in_ms(const struct rib *rib, uint64_t now_ms);

#endif
