/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * threads: start all threads in order, rib first, and end them.                   [main]
 */
#ifndef DAEMON_THREADS_H
#define DAEMON_THREADS_H

#include "base/sd_notify.h"
#include "daemon/dataplane.h"

/*
 * Start rib before DPDK: rib reads the checkpoint of the previous daemon while the other
 * parts start. If a predecessor still forwards, rib starts later and reads the checkpoint
 * then. Returns 0 or -errno.
 */
int rib_begin(struct dataplane *dp);

/* Start all threads. Returns 0 or -errno, with a line in the log. */
int threads_start(struct dataplane *dp);

/* End all threads that use ports, and close the ports. May be called again. */
void ports_end(struct dataplane *dp, enum end end);

/* Call ports_end(), end the other threads, too, and free the objects of the threads. */
void threads_end(struct dataplane *dp, enum end end);

/*
 * List the descriptors of threads that a successor inherits, at most FDSTORE_THREADS.
 * Returns their number.
 */
unsigned int threads_descriptors(const struct dataplane *dp, struct named_fd *into);

#endif
