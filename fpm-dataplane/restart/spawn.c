/* SPDX-License-Identifier: BSD-3-Clause */
#include "restart/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/sd_notify.h"
#include "start/cpus.h"

#define NAMES_BYTES 8192

/*
 * Place the descriptors from SD_FIRST_FD on, and close all above them. They are first
 * copied to numbers above that range, as low as possible, because RLIMIT_NOFILE limits the
 * numbers.
 */
static int
fds_place(posix_spawn_file_actions_t *actions, const struct named_fd *fd, unsigned int n_fd,
	  int *high)
{
	int rc = 0;

	for (unsigned int i = 0; i < n_fd && rc == 0; i++) {
		high[i] = fcntl(fd[i].fd, F_DUPFD_CLOEXEC, SD_FIRST_FD + (int)n_fd);
		rc = high[i] < 0 ? errno
				 : posix_spawn_file_actions_adddup2(actions, high[i],
								    SD_FIRST_FD + (int)i);
	}
	if (rc == 0)
		rc = posix_spawn_file_actions_addclosefrom_np(actions,
							      SD_FIRST_FD + (int)n_fd);
	return -rc;
}

/* Start the program with all CPUs and the signal mask `mask`. */
static int
program_spawn(pid_t *pid, char *const argv[], const struct named_fd *fd, unsigned int n_fd,
	      const sigset_t *mask)
{
	posix_spawn_file_actions_t actions;
	char names[NAMES_BYTES], **env;
	posix_spawnattr_t attr;
	int high[FDSTORE_MAX], rc;
	size_t len = 0;

	for (unsigned int i = 0; i < n_fd; i++) {
		high[i] = -1;
		len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s",
					i == 0 ? "" : ":", fd[i].name);
	}
	env = sd_env(names, n_fd);
	if (env == NULL)
		return -ENOMEM;
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, mask);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	rc = fds_place(&actions, fd, n_fd, high);
	if (rc == 0) {
		cpus_allow_all(true);
		rc = -posix_spawnp(pid, argv[0], &actions, &attr, argv, env);
		cpus_allow_all(false);
	}
	for (unsigned int i = 0; i < n_fd; i++)
		if (high[i] >= 0)
			close(high[i]);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	sd_env_free(env);
	return rc;
}

int
child_start(struct child *child, char *const argv[], const struct named_fd *fd,
	    unsigned int n, const char *sock_name, const sigset_t *start_mask)
{
	struct named_fd all[FDSTORE_MAX];
	int pair[2], rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	for (unsigned int i = 0; i < n; i++)
		all[i] = fd[i];
	all[n].fd = pair[1];
	snprintf(all[n].name, sizeof(all[n].name), "%s", sock_name);
	rc = program_spawn(&child->pid, argv, all, n + 1, start_mask);
	close(pair[1]);
	child->sock = pair[0];
	if (rc < 0)
		close(pair[0]);
	return rc;
}
