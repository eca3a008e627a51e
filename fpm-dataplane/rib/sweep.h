/* SPDX-License-Identifier: BSD-3-Clause */
/* Sweep the routes that a replay did not confirm. [rib] */
#ifndef RIB_SWEEP_H
#define RIB_SWEEP_H

#include <stdbool.h>

struct rib;

bool sweep_round(struct rib *rib); /* return true if more is to be done at once */

#endif
