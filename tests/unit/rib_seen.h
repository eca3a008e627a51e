/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compare a RIB with the model of a capture.
 */
#ifndef RIB_SEEN_H
#define RIB_SEEN_H

#include "rib_rig.h"

#include "capture_model.h"

/* Assert that ids, routes as listed, counts and paths of packets are as in the model. */
void assert_rig_is(struct rig *g, const struct model *m, const char *what);

#endif
