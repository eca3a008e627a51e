/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * offspring: the daemon starts a program, itself mostly, that is given descriptors by name as a
 * service manager would give them (base/service.h), and a way to talk. posix_spawn() and not
 * fork(): that would mark all memory for copying under the forwarders' hands.      [main]
 */
#ifndef OFFSPRING_H
#define OFFSPRING_H

#include <signal.h>
#include <sys/types.h>

#include "keep.h"

struct offspring {
	pid_t pid;
	int sock; /* ours of the way to it, SOCK_SEQPACKET; close-on-exec */
};

/*
 * Start argv[0] with all CPUs and the signal mask `born_with`; of the `n` descriptors, which stay
 * the caller's, and of the way, which it knows as `way`, it has copies, and no others. Returns 0,
 * or -errno with nothing left; n < KEPT_MAX.
 */
int offspring_start(struct offspring *o, char *const argv[], const struct kept *fd,
		    unsigned int n, const char *way, const sigset_t *born_with);

#endif
