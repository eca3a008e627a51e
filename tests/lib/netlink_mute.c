/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library for LD_PRELOAD: with NETLINK_MUTE in the environment the kernel answers none of
 * the requests that a thread of this name makes by netlink. It stands for a kernel whose locks
 * are taken.
 */
#include <linux/netlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

ssize_t
send(int fd, const void *octets, size_t len, int flags)
{
	const char *mute = getenv("NETLINK_MUTE");
	int family = 0;
	socklen_t size = sizeof(family);
	char name[16] = "";

	if (mute != NULL && prctl(PR_GET_NAME, name) == 0 && strcmp(name, mute) == 0 &&
	    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size) == 0 &&
	    family == AF_NETLINK)
		return (ssize_t)len;
	return syscall(SYS_sendto, fd, octets, len, flags, NULL, 0);
}
