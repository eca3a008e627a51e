/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Read from a socket to which every process may write. The kernel tells the process id of
 * the sender of a datagram. All unwanted descriptors of a datagram are closed. Otherwise
 * fpm-supervise would run out of descriptors and could not start the program again.
 */
#include "supervise/notify.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int
notify_open(char name[NOTIFY_NAME_BYTES])
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	socklen_t len = sizeof(addr.sun_family);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int on = 1, rc;

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0 ||
	    bind(fd, (struct sockaddr *)&addr, len) < 0)
		goto undo;
	len = sizeof(addr);
	if (getsockname(fd, (struct sockaddr *)&addr, &len) < 0)
		goto undo;
	len -= (socklen_t)sizeof(addr.sun_family) + 1;
	snprintf(name, NOTIFY_NAME_BYTES, "@%.*s", (int)len, addr.sun_path + 1);
	return fd;
undo:
	rc = -errno;
	close(fd);
	return rc;
}

/*
 * Receive all descriptors of `c`. Store the first in `*fd` if `*fd` is -1, and close the
 * others. Return the number of all descriptors.
 */
static unsigned int
fds_take_first(const struct cmsghdr *c, int *fd)
{
	unsigned int n = (unsigned int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));

	for (unsigned int i = 0; i < n; i++) {
		int one;

		memcpy(&one, CMSG_DATA(c) + i * sizeof(one), sizeof(one));
		if (*fd < 0)
			*fd = one;
		else
			close(one);
	}
	return n;
}

int
notify_take(int sock, struct notice *n)
{
	/*
	 * On 64-bit machines the buffer has room for two descriptors because of alignment.
	 */
	union {
		char buf[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {.iov_base = n->text, .iov_len = sizeof(n->text) - 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.buf,
			     .msg_controllen = sizeof(control.buf)};
	ssize_t len = recvmsg(sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	unsigned int n_fd = 0;

	n->from = 0;
	n->fd = -1;
	if (len < 0)
		return -EAGAIN;
	n->text[len] = '\0';
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c != NULL; c = CMSG_NXTHDR(&msg, c)) {
		struct ucred cred;

		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_RIGHTS)
			n_fd += fds_take_first(c, &n->fd);
		if (c->cmsg_type == SCM_CREDENTIALS) {
			memcpy(&cred, CMSG_DATA(c), sizeof(cred));
			n->from = cred.pid;
		}
	}
	if (n_fd <= 1 && (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0)
		return 0;
	if (n->fd >= 0)
		close(n->fd);
	n->fd = -1;
	return -EBADMSG;
}
