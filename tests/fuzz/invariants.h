/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What holds in a rib after every round, whatever zebra said.
 */
#ifndef INVARIANTS_H
#define INVARIANTS_H

#include "must.h"

struct rig;

/* After rig_settle(): counts are what they count, and nothing names what is gone. */
void rib_must_be_sound(struct rig *g);

#endif
