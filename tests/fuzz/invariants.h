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

/*
 * Check after rig_settle() that counts equal the number of objects, and that no object
 * refers to a freed object.
 */
void rib_must_be_sound(struct rig *g);
/* Return the number of slots that rib keeps although no route has them. */
uint32_t rib_n_own_slots(const struct rib *rib);

#endif
