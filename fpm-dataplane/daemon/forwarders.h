/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * forwarders: the threads of fwd/ as main sees them: made, launched on their lcores, ended.
 *                                                                                 [main]
 */
#ifndef DAEMON_FORWARDERS_H
#define DAEMON_FORWARDERS_H

struct dataplane;

/*
 * Make what each forwarder has, a forwarder for each core of the configuration. The FIB, the
 * watch and dp->deal are there. Returns 0 or -errno, with a line in the log; what was made is
 * freed by forwarders_free().
 */
int forwarders_make(struct dataplane *dp);

void forwarders_launch(struct dataplane *dp);

/* End all forwarders. One that takes long is named in the log, and waited for. */
void forwarders_end(struct dataplane *dp);

void forwarders_free(struct dataplane *dp);

#endif
