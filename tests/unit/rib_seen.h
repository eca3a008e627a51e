/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A whole rib, as text that the model of a capture can be compared with.
 */
#ifndef RIB_SEEN_H
#define RIB_SEEN_H

#include "rib_rig.h"

#include "capture_model.h"

/* Ids, routes as shown, counts, and where packets go: all as the model has it. */
void assert_rig_is(struct rig *g, const struct model *m, const char *what);

#endif
