/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * notify: the socket by which the program says how it is (sd_notify(3)). It is abstract, and so
 * within reach of every program of the same network namespace, whoever runs it.
 */
#ifndef SUPERVISE_NOTIFY_H
#define SUPERVISE_NOTIFY_H

#include <sys/types.h>

#define NOTIFY_NAME_BYTES 16

struct notice {
	pid_t from;     /* as the kernel says; 0: it does not know */
	char text[512]; /* lines of VARIABLE=value */
	int fd;         /* the receiver's from now on; -1: none came */
};

/*
 * Open it under a name of the kernel's choice, of which nothing is left in any directory; `name`
 * is what NOTIFY_SOCKET says. Returns the descriptor or -errno.
 */
int notify_open(char name[NOTIFY_NAME_BYTES]);

/*
 * The next datagram of `sock`. Returns 0, or -EAGAIN: there is none; -EBADMSG: it is longer than
 * any, or brings more than one descriptor. None of what it brought is open then.
 */
int notify_take(int sock, struct notice *n);

#endif
