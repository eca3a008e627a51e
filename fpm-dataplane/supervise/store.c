/* SPDX-License-Identifier: BSD-3-Clause */
/* Stored descriptors: a small table by name, and its handover to a child. */
#include "supervise/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_FD 3

/*
 * Return true if the name can be passed on. As in systemd, the names are passed in one line
 * with ':' between them.
 */
static bool
name_is_good(const char *name)
{
	size_t len = strlen(name);

	if (len == 0 || len >= STORE_NAME_BYTES)
		return false;
	for (; *name != '\0'; name++)
		if (*name <= ' ' || *name > '~' || *name == ':')
			return false;
	return true;
}

int
store_put(struct store *s, const char *name, int fd)
{
	int rc = !name_is_good(name) ? -EINVAL : 0;

	if (rc == 0)
		store_remove(s, name);
	if (rc == 0 && s->n == STORE_MAX)
		rc = -ENOSPC;
	if (rc < 0) {
		close(fd);
		return rc;
	}
	s->item[s->n].fd = fd;
	memcpy(s->item[s->n].name, name, strlen(name) + 1);
	s->n++;
	return 0;
}

bool
store_remove(struct store *s, const char *name)
{
	for (unsigned int i = 0; i < s->n; i++) {
		if (strcmp(s->item[i].name, name) != 0)
			continue;
		close(s->item[i].fd);
		s->item[i] = s->item[--s->n];
		return true;
	}
	return false;
}

void
store_clear(struct store *s)
{
	while (s->n > 0)
		close(s->item[--s->n].fd);
}

static int
env_set(unsigned int n, const char *names)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", (int)getpid());
	if (setenv("LISTEN_PID", text, 1) < 0)
		return -errno;
	snprintf(text, sizeof(text), "%u", n);
	if (setenv("LISTEN_FDS", text, 1) < 0 || setenv("LISTEN_FDNAMES", names, 1) < 0)
		return -errno;
	return 0;
}

int
store_export(const struct store *s)
{
	static char names[STORE_MAX * STORE_NAME_BYTES];
	int high[STORE_MAX];
	size_t len = 0;

	if (s->n == 0)
		return 0;
	/*
	 * Copy all descriptors to higher numbers first, because a descriptor may have the
	 * new number of another.
	 */
	for (unsigned int i = 0; i < s->n; i++) {
		high[i] = fcntl(s->item[i].fd, F_DUPFD_CLOEXEC, FIRST_FD + (int)s->n);
		if (high[i] < 0)
			return -errno;
	}
	for (unsigned int i = 0; i < s->n; i++) {
		if (dup2(high[i], FIRST_FD + (int)i) < 0)
			return -errno;
		len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s",
					i == 0 ? "" : ":", s->item[i].name);
	}
	return env_set(s->n, names);
}
