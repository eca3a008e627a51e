/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fanout: the sockets of net_af_packet, seen on their way into the kernel (fanout.c).
 */
#ifndef PORT_FANOUT_H
#define PORT_FANOUT_H

#include <stdint.h>

#define FANOUT_QUEUES 64

struct fanout_seen {
	unsigned int n;
	int fd[FANOUT_QUEUES]; /* of the device's queues, in their order */
};

/* What this thread makes from now on is told in *into; NULL: no more. */
void fanout_learn(struct fanout_seen *into);

/*
 * Frames for which a queue's ring had no room since this was last asked (packet(7),
 * PACKET_STATISTICS). The kernel forgets what it told: one asker at a time.  [any thread]
 */
uint64_t fanout_missed(int fd);

#endif
