/* SPDX-License-Identifier: BSD-3-Clause */
/* sockaddr: socket addresses of IPv4 and IPv6. */
#ifndef BASE_SOCKADDR_H
#define BASE_SOCKADDR_H

#include <netinet/in.h>
#include <sys/socket.h>

/* Return the length of an address, in octets, for bind(2), connect(2) and sendto(2). */
static inline socklen_t
sockaddr_bytes(const struct sockaddr_storage *a)
{
	return a->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					: sizeof(struct sockaddr_in);
}

#endif
