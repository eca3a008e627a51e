/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * threads: the workers and what each is told of the others; the order in which all threads
 * start and end.                                                                  [main]
 */
#ifndef DAEMON_THREADS_H
#define DAEMON_THREADS_H

#include "daemon/dataplane.h"

/*
 * Begin with rib, before DPDK: it reads the checkpoint of the last daemon beside the rest of the
 * start; that of a predecessor that still forwards it reads later. Returns 0 or -errno.
 */
int rib_begin(struct dataplane *dp);

/* Set up all other workers; none of them runs yet. Returns 0 or -errno. */
int workers_setup(struct dataplane *dp);

/* Start all threads. Returns 0 or -errno, with a line in the log. */
int threads_start(struct dataplane *dp);

/* End all threads but rib, and close the ports. May be called again. */
void ports_end(struct dataplane *dp, enum end end);

/* The same; end rib, too, and free all that the threads had. */
void threads_end(struct dataplane *dp, enum end end);

#endif
