/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fingerprint of a RIB.
 */
#ifndef RIB_PRINT_H
#define RIB_PRINT_H

#include "rib_rig.h"

/*
 * Return a number that is equal for RIBs with equal content: ids and their meaning, routes
 * and their paths. Numbers of slots and adjacencies, order and shares are not part of it,
 * because they depend on history. Asserts that the tries agree with the routes.
 */
uint64_t rig_fingerprint(const struct rig *g);

#endif
