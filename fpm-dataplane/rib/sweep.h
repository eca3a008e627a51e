/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a replay, and the sweep of what it left out. [rib]. */
#ifndef RIB_SWEEP_H
#define RIB_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

struct rib;

bool sweep_round(struct rib *rib); /* true: more at once */
/* Of main, and of VRFs. A word of dist/openapi.yaml; milliseconds, -1: not in sight. */
const char *session_phase(const struct rib *rib);
const char *session_vrf_phase(const struct rib *rib);
int64_t sweep_in_ms(const struct rib *rib, uint64_t now_ms);
int64_t sweep_vrfs_in_ms(const struct rib *rib, uint64_t now_ms);

#endif
