/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * notify: the socket through which the program reports its state (sd_notify(3)). It is
 * abstract, so every program in the same network namespace can write to it, under any user.
 */
#ifndef SUPERVISE_NOTIFY_H
#define SUPERVISE_NOTIFY_H

#include <sys/types.h>

#define NOTIFY_NAME_BYTES 16

struct notice {
	pid_t from;     /* given by the kernel; 0: unknown */
	char text[512]; /* lines of VARIABLE=value */
	int fd;         /* owned by the receiver; -1: none */
};

/*
 * Open the socket under a name that the kernel chooses, without an entry in a directory.
 * `name` is the value for NOTIFY_SOCKET. Returns the descriptor or -errno.
 */
int notify_open(char name[NOTIFY_NAME_BYTES]);

/*
 * Take the next datagram of `sock`. Returns 0, -EAGAIN (no datagram), or -EBADMSG: the
 * datagram is too long or has more than one descriptor; all of its descriptors are closed
 * then.
 */
int notify_take(int sock, struct notice *n);

#endif
