/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * forwarders: make the threads of fwd/, launch them on their lcores, and end them.
 *                                                                               [main]
 */
#ifndef DAEMON_FORWARDERS_H
#define DAEMON_FORWARDERS_H

struct dataplane;

/*
 * Make the objects of a forwarder for each core of the configuration. The FIB, the watch
 * and dp->rxq_assign exist. Returns 0 or -errno, with a line in the log; forwarders_free()
 * also frees a part of the objects.
 */
int forwarders_make(struct dataplane *dp);

void forwarders_launch(struct dataplane *dp);

/* End all forwarders and wait for them. The log names a forwarder that takes long. */
void forwarders_end(struct dataplane *dp);

void forwarders_free(struct dataplane *dp);

#endif
