/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vhost: the path of a socket on which DPDK listens. Runs in main at the start, in manage
 * later.
 */
#include "pci/vhost.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/errmsg.h"
#include "pci/memif.h"

#define PATH_STRLEN 256 /* a device has at most 255 characters */

static bool
device_is_vhost(const char *device)
{
	return strncmp(device, "net_vhost", 9) == 0;
}

/*
 * Write the path of the socket that DPDK makes for a device to `path`. Return false if it
 * makes none.
 */
static bool
listener_path(const char *device, char path[PATH_STRLEN])
{
	const char *iface = strstr(device, ",iface=");

	if (!device_is_vhost(device))
		return memif_server_path(device, path, PATH_STRLEN);
	/* With client=1 the other side makes the socket. */
	if (iface == NULL || strstr(device, ",client=1") != NULL)
		return false;
	snprintf(path, PATH_STRLEN, "%.*s", (int)strcspn(iface + 7, ","), iface + 7);
	return true;
}

/*
 * Return true if the kernel lists a bound socket with this path, or with another path of
 * the same file, or if its list cannot be read. The list has the sockets of this network
 * namespace only.
 */
static bool
path_is_listed(const char *path)
{
	FILE *list = fopen("/proc/thread-self/net/unix", "re");
	struct stat ours, other;
	bool there = stat(path, &ours) == 0, found = list == NULL;
	char line[512];

	while (!found && list != NULL && fgets(line, sizeof(line), list) != NULL) {
		int at = 0;

		line[strcspn(line, "\n")] = '\0';
		/* number, references, protocol, flags, type, state, inode */
		(void)sscanf(line, "%*s %*s %*s %*s %*s %*s %*s %n", &at);
		if (at > 0)
			found = strcmp(line + at, path) == 0 ||
				(there && stat(line + at, &other) == 0 &&
				 other.st_dev == ours.st_dev &&
				 other.st_ino == ours.st_ino);
	}
	if (list != NULL)
		fclose(list);
	return found;
}

/*
 * Free the path for a socket: remove a socket that no process has. `sock` is a datagram
 * socket, because DPDK 22.11 panics if a client leaves its memif server early. A connect of
 * another type than the listener's is refused before the listener hears of it. Return 0, 1
 * if a process has the socket, or -errno.
 */
static int
path_free(int sock, const struct sockaddr_un *sun)
{
	const struct sockaddr *addr = (const struct sockaddr *)sun;
	int rc = connect(sock, addr, sizeof(*sun)) == 0 ? 0 : errno;

	/* A socket of another user refuses the daemon, whether a process has it or not. */
	if (rc == 0 || rc == EPROTOTYPE || (rc == EACCES && path_is_listed(sun->sun_path)))
		return 1;
	if ((rc == ECONNREFUSED || rc == EACCES) && unlink(sun->sun_path) < 0)
		return -errno;
	/* DPDK does not report why it cannot make a socket. */
	if (bind(sock, addr, sizeof(*sun)) < 0)
		return -errno;
	return unlink(sun->sun_path) < 0 ? -errno : 0;
}

int
listener_prepare(const char *device, char *why, size_t why_size)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	char path[PATH_STRLEN];
	struct stat st;
	int sock, rc;

	if (!listener_path(device, path))
		return 0;
	if (path[0] == '\0' || strlen(path) >= sizeof(sun.sun_path))
		return why_not(why, why_size, -EINVAL,
			       "'%s' is no path of a socket; expected 1 to %zu characters",
			       path, sizeof(sun.sun_path) - 1);
	strcpy(sun.sun_path, path);
	/* DPDK would listen nowhere, and remove the file when it closes the device. */
	if (lstat(path, &st) == 0 && !S_ISSOCK(st.st_mode))
		return why_not(why, why_size, -EEXIST,
			       "%s is no socket; expected a path where nothing is, or a "
			       "socket",
			       path);
	sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	rc = sock < 0 ? -errno : path_free(sock, &sun);
	if (sock >= 0)
		close(sock);
	if (rc < 0)
		return why_not(why, why_size, rc, "socket %s cannot be made: %s", path,
			       strerror(-rc));
	/* Several ports of one process may share the socket of a memif server. */
	if (rc == 1 && device_is_vhost(device))
		return why_not(why, why_size, -EBUSY,
			       "a process listens on %s, perhaps another fpm-dataplane",
			       path);
	return 0;
}
