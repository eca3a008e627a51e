/* SPDX-License-Identifier: BSD-3-Clause */
/* masks: the lengths of the prefixes by which addresses are routed, for sFlow.    [rib] */
#ifndef RIB_MASKS_H
#define RIB_MASKS_H

#include "base/msg.h"

struct rib;

/*
 * Fill in the length of the longest prefix that covers each address. Family 0 means no
 * route. A VRF without a route uses table main.
 */
void masks_fill(const struct rib *rib, struct msg_masks *masks);

#endif
