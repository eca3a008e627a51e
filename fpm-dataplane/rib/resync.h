/* SPDX-License-Identifier: BSD-3-Clause */
/* The walk that brings the tries in line with the routes. [rib] */
#ifndef RIB_RESYNC_H
#define RIB_RESYNC_H

#include <stdbool.h>

struct rib;

bool resync_round(struct rib *rib); /* one slice; true: more at once */

#endif
