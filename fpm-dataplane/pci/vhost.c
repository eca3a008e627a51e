/* SPDX-License-Identifier: BSD-3-Clause */
/* vhost: the socket of net_vhost. Runs in main at the start, in manage later. */
#include "pci/vhost.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/errmsg.h"

int
vhost_prepare(const char *device, char *why, size_t why_size)
{
	const char *path = strstr(device, ",iface=");
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	struct stat st;
	int sock, rc;

	if (strncmp(device, "net_vhost", 9) != 0 || path == NULL ||
	    strstr(device, ",client=1") != NULL)
		return 0; /* with client=1 the other side makes the socket */
	snprintf(sun.sun_path, sizeof(sun.sun_path), "%.*s", (int)strcspn(path + 7, ","),
		 path + 7);
	if (lstat(sun.sun_path, &st) < 0 || !S_ISSOCK(st.st_mode))
		return 0;
	sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (sock < 0)
		return 0;
	rc = connect(sock, (struct sockaddr *)&sun, sizeof(sun)) < 0 ? -errno : 0;
	close(sock);
	if (rc == 0 || rc == -EAGAIN)
		return why_not(why, why_size, -EBUSY,
			       "a process listens on %s, perhaps another fpm-dataplane",
			       sun.sun_path);
	if (rc == -ECONNREFUSED)
		(void)unlink(sun.sun_path);
	return 0;
}
