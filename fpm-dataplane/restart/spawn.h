/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spawn: the daemon starts a program, itself mostly, that is given descriptors by name as a
 * service manager would give them (base/sd_notify.h), and a way to talk. posix_spawn() and not
 * fork(): that would mark all memory for copying under the forwarders' hands.      [main]
 */
#ifndef RESTART_SPAWN_H
#define RESTART_SPAWN_H

#include <signal.h>
#include <sys/types.h>

#include "restart/fdstore.h"

struct offspring {
	pid_t pid;
	int sock; /* ours of the way to it, SOCK_SEQPACKET; close-on-exec */
};

/*
 * Start argv[0] with all CPUs and the signal mask `born_with`; of the `n` descriptors, which stay
 * the caller's, and of the way, which it knows as `way`, it has copies, and no others. Returns 0,
 * or -errno with nothing left; n < KEPT_MAX.
 */
int offspring_start(struct offspring *o, char *const argv[], const struct named_fd *fd,
		    unsigned int n, const char *way, const sigset_t *born_with);

#endif
