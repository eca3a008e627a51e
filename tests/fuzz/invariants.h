/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The invariants of a RIB after every round, whatever zebra sent.
 */
#ifndef INVARIANTS_H
#define INVARIANTS_H

#include "must.h"

struct rig;

/* After rig_settle(): counts equal the objects, and no object refers to a freed object. */
void rib_must_be_sound(struct rig *g);

#endif
