/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The invariants of a RIB after every round, whatever zebra sent.
 */
#ifndef INVARIANTS_H
#define INVARIANTS_H

#include <stdint.h>

#include "must.h"

struct rib;
struct rig;

/* After rig_settle(): counts equal the objects, and no object refers to a freed object. */
void rib_must_be_sound(struct rig *g);
/* Return how many slots rib keeps although no route names them. */
uint32_t rib_n_own_slots(const struct rib *rib);

#endif
