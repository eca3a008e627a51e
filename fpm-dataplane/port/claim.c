/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * claim: sockets that mark kernel interfaces as used. Runs in main at the start, in manage
 * later.
 */
#include "port/claim.h"

#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/errmsg.h"
#include "base/log.h"

#define HOLDER_MS 2000 /* manage replies, and a killed daemon ends, in less time */
#define TRIES     8    /* other processes may take and release the name meanwhile */

static pid_t allowed;

void
claim_allow(pid_t predecessor)
{
	allowed = predecessor;
}

pid_t
claim_allowed(void)
{
	return allowed;
}

/*
 * Connect to the process that has the name. Returns the connection, or -errno if no process
 * has the name now.
 */
static int
holder_ask(const struct sockaddr_un *name, socklen_t name_len, struct ucred *holder)
{
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc;
	socklen_t len = sizeof(*holder);

	if (sock < 0)
		return -errno;
	if (connect(sock, (const struct sockaddr *)name, name_len) == 0 &&
	    getsockopt(sock, SOL_SOCKET, SO_PEERCRED, holder, &len) == 0)
		return sock;
	rc = -errno;
	close(sock);
	return rc;
}

/*
 * Return true if the process at the other end of a connection ends within HOLDER_MS. A
 * daemon that runs accepts the connection and closes it (claim_answer()). If the process
 * ends before it accepts the connection, the kernel resets the connection.
 */
static bool
holder_ends(int sock)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};
	char octet;

	return poll(&p, 1, HOLDER_MS) > 0 && recv(sock, &octet, 1, 0) < 0 &&
	       errno == ECONNRESET;
}

void
claim_answer(int claim)
{
	int sock;

	while ((sock = accept4(claim, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		close(sock);
}

/* Return a listening socket with the name, or -errno. */
static int
claim_listen(const struct sockaddr_un *name, socklen_t len)
{
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc;

	if (sock < 0)
		return -errno;
	if (bind(sock, (const struct sockaddr *)name, len) == 0 && listen(sock, 8) == 0)
		return sock;
	rc = -errno;
	close(sock);
	return rc;
}

/*
 * Return what claim_take() returns if another process has the name; 0 if that process has
 * just ended.
 */
static int
claim_refuse(const char *interface, const struct sockaddr_un *name, socklen_t len,
	     char *why, unsigned int why_size)
{
	struct ucred holder = {0};
	int sock = holder_ask(name, len, &holder);
	bool ended;

	if (sock < 0)
		return sock == -ECONNREFUSED ? 0 : -1;
	/* If this process has the name, holder_ends() would wait for this process. */
	ended = holder.pid != allowed && holder.pid != getpid() && holder_ends(sock);
	close(sock);
	if (holder.pid == allowed)
		return -1;
	if (ended)
		return 0;
	/* Any user of the machine can take the name. This must not stop the daemon. */
	if (holder.uid != geteuid() && holder.uid != 0) {
		log_warn("port: interface not claimed interface=%s holder_pid=%d "
			 "holder_uid=%u",
			 interface, holder.pid, holder.uid);
		return -1;
	}
	if (holder.pid == getpid())
		return why_not(
			why, why_size, -EBUSY,
			"interface %s is the device of a port that runs; remove that "
			"port first (`port del`) or give it another device",
			interface);
	return why_not(why, why_size, -EBUSY,
		       "interface %s is a port of another fpm-dataplane, process %d: both "
		       "would forward each of its packets",
		       interface, holder.pid);
}

int
claim_take(const char *interface, char *why, unsigned int why_size)
{
	unsigned int ifindex = if_nametoindex(interface), tries = 0;
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	socklen_t len;
	int rc;

	if (ifindex == 0)
		return -1;
	/* The name begins with a null octet, and its length is a part of it. */
	len = (socklen_t)offsetof(struct sockaddr_un, sun_path) + 1 +
	      (socklen_t)snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1,
				  "fpm-dataplane/port/%u", ifindex);
	do {
		rc = claim_listen(&name, len);
		if (rc >= 0)
			return rc;
		if (rc != -EADDRINUSE)
			return -1;
		rc = claim_refuse(interface, &name, len, why, why_size);
	} while (rc == 0 && ++tries < TRIES);
	return rc == 0 ? -1 : rc;
}
