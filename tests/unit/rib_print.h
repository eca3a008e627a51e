/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A whole rib as one number.
 */
#ifndef RIB_PRINT_H
#define RIB_PRINT_H

#include "rib_rig.h"

/*
 * The same for ribs of the same content: ids and what they mean, routes and where they lead.
 * Numbers of slots and adjacencies, order and shares do not count: these depend on history.
 * Asserts that the tries have what the routes say.
 */
uint64_t rig_fingerprint(const struct rig *g);

#endif
