/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Read and write files of /sys and /proc, one value each: text, numbers and the targets of
 * symbolic links.
 */
#include "base/sysfs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int
sysfs_read(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc = 0;
	size_t n = 0;

	buf[0] = '\0';
	if (fd < 0)
		return -errno;
	while (n < size - 1) {
		ssize_t got = read(fd, buf + n, size - 1 - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			rc = -errno;
		if (got <= 0)
			break;
		n += (size_t)got;
	}
	close(fd);
	if (n > 0)
		rc = (int)n;
	buf[n] = '\0';
	return rc;
}

void
sysfs_read_line(const char *path, char *buf, size_t size)
{
	(void)sysfs_read(path, buf, size);
	buf[strcspn(buf, "\n")] = '\0';
}

long long
sysfs_read_number(const char *path, long long otherwise)
{
	char text[64], *end;
	long long value;

	sysfs_read_line(path, text, sizeof(text));
	value = strtoll(text, &end, 0);
	return end != text && *end == '\0' ? value : otherwise;
}

bool
sysfs_read_link(const char *path, char *buf, size_t size)
{
	char target[PATH_MAX];
	ssize_t n = readlink(path, target, sizeof(target) - 1);
	const char *slash;

	target[n < 0 ? 0 : n] = '\0';
	slash = strrchr(target, '/');
	snprintf(buf, size, "%.*s", (int)size - 1, slash != NULL ? slash + 1 : target);
	return n >= 0;
}

int
sysfs_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	int rc = fd < 0 || write(fd, text, strlen(text)) < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return rc;
}
