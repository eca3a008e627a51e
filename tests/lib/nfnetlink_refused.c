/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library for LD_PRELOAD: with NFNETLINK_REFUSED in the environment the kernel refuses the
 * program sockets for the netlink of netfilter, as some security modules do.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

int
socket(int family, int type, int protocol)
{
	if (getenv("NFNETLINK_REFUSED") != NULL && family == AF_NETLINK &&
	    protocol == NETLINK_NETFILTER) {
		errno = EPERM;
		return -1;
	}
	return (int)syscall(SYS_socket, family, type, protocol);
}
