/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fanout: the sockets of net_af_packet, recorded when they join their group (fanout.c).
 */
#ifndef PORT_FANOUT_H
#define PORT_FANOUT_H

#include <stdint.h>

#define FANOUT_QUEUES 64

struct fanout_seen {
	unsigned int n;
	int fd[FANOUT_QUEUES]; /* sockets of the device's queues, in their order */
};

/* Record in *into the sockets that join a group in this thread from now on. NULL: stop. */
void fanout_learn(struct fanout_seen *into);

/*
 * Return the number of frames that found no room in a queue's ring since the last call
 * (packet(7), PACKET_STATISTICS). The kernel resets the number, so one caller at a time may
 * call this.                                                               [any thread]
 */
uint64_t fanout_missed(int fd);

#endif
