/* SPDX-License-Identifier: BSD-3-Clause */
/* Parse devargs of net_memif as in the guide of DPDK 22.11, with its default values. */
#include "pci/memif.h"

#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define SOCKET_DEFAULT "/run/memif.sock"
#define HELLO_MS       200 /* time for the server's first message */

/*
 * Copy the value of a key of the devargs. Returns false if the key is absent or its value
 * is too long.
 */
static bool
word_value(const char *device, const char *key, char *out, size_t size)
{
	size_t n = strlen(key);

	for (const char *p = strchr(device, ','); p != NULL; p = strchr(p + 1, ',')) {
		size_t len;

		if (strncmp(p + 1, key, n) != 0 || p[1 + n] != '=')
			continue;
		p += n + 2;
		len = strcspn(p, ",");
		if (len >= size)
			return false;
		memcpy(out, p, len);
		out[len] = '\0';
		return true;
	}
	return false;
}

bool
memif_is_client(const char *device)
{
	char role[16] = "client";

	if (strncmp(device, "net_memif", 9) != 0)
		return false;
	(void)word_value(device, "role", role, sizeof(role));
	return strcmp(role, "client") == 0 || strcmp(role, "slave") == 0;
}

bool
memif_server_path(const char *device, char *path, size_t size)
{
	char role[16] = "client", abstract[8] = "yes";

	if (strncmp(device, "net_memif", 9) != 0)
		return false;
	(void)word_value(device, "role", role, sizeof(role));
	(void)word_value(device, "socket-abstract", abstract, sizeof(abstract));
	if ((strcmp(role, "server") != 0 && strcmp(role, "master") != 0) ||
	    strcmp(abstract, "no") != 0)
		return false;
	if (!word_value(device, "socket", path, size))
		snprintf(path, size, SOCKET_DEFAULT);
	return true;
}

enum memif_server
memif_server(const char *device)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	char path[sizeof(sun.sun_path) - 1] = SOCKET_DEFAULT, abstract[8] = "yes";
	socklen_t len = offsetof(struct sockaddr_un, sun_path);
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct pollfd poll_hello;
	enum memif_server found = MEMIF_AWAY;

	if (sock < 0)
		return MEMIF_AWAY;
	(void)word_value(device, "socket", path, sizeof(path));
	(void)word_value(device, "socket-abstract", abstract, sizeof(abstract));
	if (strcmp(abstract, "yes") == 0)
		len += (socklen_t)snprintf(sun.sun_path + 1, sizeof(sun.sun_path) - 1, "%s",
					   path) +
		       1;
	else
		len += (socklen_t)snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", path) +
		       1;
	poll_hello = (struct pollfd){.fd = sock, .events = POLLIN};
	if (connect(sock, (struct sockaddr *)&sun, len) == 0)
		found = poll(&poll_hello, 1, HELLO_MS) == 1 &&
					(poll_hello.revents & POLLIN) != 0
				? MEMIF_LISTENS
				: MEMIF_MUTE;
	close(sock);
	return found;
}

bool
memif_waits(const char *device)
{
	return memif_is_client(device) && memif_server(device) != MEMIF_LISTENS;
}
