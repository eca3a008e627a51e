/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spawn: start a program, mostly the daemon's own, that inherits named descriptors as a
 * service manager passes them (base/sd_notify.h), and a socket to its parent. It uses
 * posix_spawn(), because fork() would mark all memory for copying while forwarders write to
 * it.                                                                           [main]
 */
#ifndef RESTART_SPAWN_H
#define RESTART_SPAWN_H

#include <signal.h>
#include <sys/types.h>

#include "restart/fdstore.h"

struct child {
	pid_t pid;
	int sock; /* this end of the socket pair, SOCK_SEQPACKET; close-on-exec */
};

/*
 * Start argv[0] with all CPUs and the signal mask `start_mask`. The child inherits copies
 * of the `n` descriptors (n < FDSTORE_MAX), its end of the socket pair under the name
 * `sock_name`, and no other descriptors. The caller keeps its descriptors. Returns 0, or
 * -errno with nothing left open.
 */
int child_start(struct child *child, char *const argv[], const struct named_fd *fd,
		unsigned int n, const char *sock_name, const sigset_t *start_mask);

#endif
