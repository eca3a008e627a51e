/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * claim: sockets that mark kernel interfaces as used. Runs in main at the start, in manage
 * later.
 */
#include "port/claim.h"

#include <errno.h>
#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/errmsg.h"
#include "base/log.h"

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

/* Find the process that has the name. Returns 0, or -errno if no process has it now. */
static int
holder_find(const struct sockaddr_un *name, socklen_t name_len, struct ucred *holder)
{
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc = 0;
	socklen_t len = sizeof(*holder);

	if (sock < 0)
		return -errno;
	if (connect(sock, (const struct sockaddr *)name, name_len) < 0 ||
	    getsockopt(sock, SOL_SOCKET, SO_PEERCRED, holder, &len) < 0)
		rc = -errno;
	close(sock);
	return rc;
}

void
claim_answer(int claim)
{
	int sock;

	while ((sock = accept4(claim, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		close(sock);
}

int
claim_take(const char *interface, char *why, unsigned int why_size)
{
	unsigned int ifindex = if_nametoindex(interface);
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	struct ucred holder;
	socklen_t len;
	bool in_use;
	int sock;

	if (ifindex == 0)
		return -1;
	/* The name begins with a null octet, and its length is a part of it. */
	len = (socklen_t)offsetof(struct sockaddr_un, sun_path) + 1 +
	      (socklen_t)snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1,
				  "fpm-dataplane/port/%u", ifindex);
	sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (sock < 0)
		return -1;
	if (bind(sock, (struct sockaddr *)&name, len) == 0 && listen(sock, 8) == 0)
		return sock;
	in_use = errno == EADDRINUSE;
	close(sock);
	if (!in_use || holder_find(&name, len, &holder) < 0 || holder.pid == allowed)
		return -1;
	/* Any user of the machine can take the name, and must not keep the daemon from it. */
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
