/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * netns: enter another network namespace and return.
 *
 * Only the calling thread moves. An object that is opened inside (TAP, netlink socket)
 * belongs to that namespace permanently, so callers enter, open and leave; they do not work
 * inside. A thread that cannot return would do all later work in the wrong namespace
 * without an error; therefore netns_leave() aborts in this case.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <string.h>
#include <unistd.h>

#include "tap-bridge/netns.h"

#define NETNS_DIR "/run/netns/"

/* The namespace of netns_keep(); written before the process has other threads. */
static struct {
	int fd; /* -1: none */
	char name[NAME_MAX + 1];
} kept = {.fd = -1};

static int
netns_path(const char *name, char *path, size_t path_bytes)
{
	if (strchr(name, '/') != NULL || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return -EINVAL;
	if (strlen(name) > NAME_MAX)
		return -ENAMETOOLONG;
	snprintf(path, path_bytes, NETNS_DIR "%s", name);
	return 0;
}

/* Open namespace `name`. Returns a descriptor or -errno; netns_close() closes it. */
static int
netns_open(const char *name)
{
	char path[sizeof(NETNS_DIR) + NAME_MAX];
	int fd, rc;

	if (kept.fd >= 0 && strcmp(name, kept.name) == 0)
		return kept.fd;
	rc = netns_path(name, path, sizeof(path));
	if (rc < 0)
		return rc;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return fd;
}

static void
netns_close(int fd)
{
	if (fd != kept.fd)
		close(fd);
}

int
netns_keep(const char *name)
{
	int fd;

	if (name[0] == '\0' || kept.fd >= 0)
		return 0;
	fd = netns_open(name);
	if (fd < 0)
		return fd;
	snprintf(kept.name, sizeof(kept.name), "%s", name);
	kept.fd = fd;
	return 0;
}

bool
netns_name_is_lost(const char *name)
{
	char path[sizeof(NETNS_DIR) + NAME_MAX];
	struct stat now, then;

	if (kept.fd < 0 || name == NULL || strcmp(name, kept.name) != 0 ||
	    netns_path(name, path, sizeof(path)) < 0 || fstat(kept.fd, &then) < 0)
		return false;
	return stat(path, &now) < 0 || now.st_dev != then.st_dev ||
	       now.st_ino != then.st_ino;
}

int
netns_enter(const char *name, struct netns_guard *guard)
{
	int saved, fd, rc = 0;

	guard->saved_fd = -1;
	if (name == NULL || name[0] == '\0')
		return 0;
	fd = netns_open(name);
	if (fd < 0)
		return fd;
	saved = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	if (saved < 0) {
		rc = -errno;
		goto out_fd;
	}
	if (setns(fd, CLONE_NEWNET) < 0) {
		rc = -errno;
		close(saved);
		goto out_fd;
	}
	guard->saved_fd = saved;
out_fd:
	netns_close(fd);
	return rc;
}

int
netns_socket(const char *name, int family, int type, int protocol)
{
	struct netns_guard guard;
	int fd, rc = netns_enter(name, &guard);

	if (rc < 0)
		return rc;
	fd = socket(family, type | SOCK_CLOEXEC, protocol);
	rc = fd < 0 ? -errno : fd;
	netns_leave(&guard);
	return rc;
}

uint64_t
netns_id(const char *name)
{
	struct netns_guard guard;
	struct stat st = {0};

	if (netns_enter(name, &guard) < 0)
		return 0;
	if (stat("/proc/thread-self/ns/net", &st) < 0)
		st.st_ino = 0;
	netns_leave(&guard);
	return st.st_ino;
}

void
netns_leave(struct netns_guard *guard)
{
	if (guard->saved_fd < 0)
		return;
	if (setns(guard->saved_fd, CLONE_NEWNET) < 0)
		abort();
	close(guard->saved_fd);
	guard->saved_fd = -1;
}
