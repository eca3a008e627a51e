/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * workers: set up the workers with pointers to each other and to the objects that they
 * share.                                                                        [main]
 */
#ifndef DAEMON_WORKERS_H
#define DAEMON_WORKERS_H

#include "daemon/dataplane.h"

/*
 * Set up all workers except for rib and rtnl, which rib_begin() sets up. None of them runs
 * yet. Returns 0 or -errno.
 */
int workers_setup(struct dataplane *dp);

#endif
