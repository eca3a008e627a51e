/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * netif: sockets and interfaces of the control namespace, for sessions over interfaces that
 * are not ports. It keeps no sessions.                                               [bfd]
 */
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/inet.h"
#include "bfd/impl.h"
#include "tap-bridge/netns.h"

#define TTL 255

socklen_t
netif_address(sa_family_t family, const struct ipaddr *addr, uint16_t port, uint32_t scope,
	      struct sockaddr_storage *out)
{
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)out;
	struct sockaddr_in *four = (struct sockaddr_in *)out;

	memset(out, 0, sizeof(*out));
	out->ss_family = family;
	if (family == AF_INET) {
		four->sin_port = htons(port);
		memcpy(&four->sin_addr, addr->octet, 4);
		return sizeof(*four);
	}
	six->sin6_port = htons(port);
	memcpy(&six->sin6_addr, addr->octet, 16);
	six->sin6_scope_id = ipaddr_is_linklocal6(addr) ? scope : 0;
	return sizeof(*six);
}

static int
option_set(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) < 0 ? -errno : 0;
}

int
netif_socket(const struct bfd *b, sa_family_t family)
{
	int fd = netns_socket(b->setup.netns, family, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	int rc;

	if (fd < 0)
		return fd;
	if (family == AF_INET) {
		rc = option_set(fd, IPPROTO_IP, IP_TTL, TTL);
		rc = rc < 0 ? rc : option_set(fd, IPPROTO_IP, IP_TOS, BFD_TCLASS);
		rc = rc < 0 ? rc : option_set(fd, IPPROTO_IP, IP_PKTINFO, 1);
		rc = rc < 0 ? rc : option_set(fd, IPPROTO_IP, IP_RECVTTL, 1);
	} else {
		rc = option_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
		rc = rc < 0 ? rc : option_set(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, TTL);
		rc = rc < 0 ? rc : option_set(fd, IPPROTO_IPV6, IPV6_TCLASS, BFD_TCLASS);
		rc = rc < 0 ? rc : option_set(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
		rc = rc < 0 ? rc : option_set(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1);
	}
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

uint32_t
netif_index(const struct bfd *b, uint32_t ifindex, const char *name)
{
	struct ifreq request = {.ifr_ifindex = (int)ifindex};
	int fd = netns_socket(b->setup.netns, AF_INET, SOCK_DGRAM, 0);

	if (fd < 0)
		return 0;
	/* The interface may have been created again with another index. */
	if (ifindex == 0 || ioctl(fd, SIOCGIFNAME, &request) < 0) {
		strncpy(request.ifr_name, name, sizeof(request.ifr_name) - 1);
		ifindex = ioctl(fd, SIOCGIFINDEX, &request) < 0
				  ? 0
				  : (uint32_t)request.ifr_ifindex;
	}
	close(fd);
	return ifindex;
}

struct ipaddr
netif_source(const struct bfd *b, uint8_t family, uint32_t ifindex,
	     const struct ipaddr *peer)
{
	sa_family_t kind = family == 4 ? AF_INET : AF_INET6;
	int fd = netns_socket(b->setup.netns, kind, SOCK_DGRAM, 0);
	struct sockaddr_storage at;
	socklen_t len = netif_address(kind, peer, BFD_PORT, ifindex, &at);
	struct ipaddr source = {0};

	if (fd < 0)
		return source;
	/* Connecting a UDP socket sends nothing. */
	if (option_set(fd, SOL_SOCKET, SO_BINDTOIFINDEX, (int)ifindex) == 0 &&
	    connect(fd, (struct sockaddr *)&at, len) == 0 &&
	    getsockname(fd, (struct sockaddr *)&at, &len) == 0)
		memcpy(source.octet,
		       kind == AF_INET ? (void *)&((struct sockaddr_in *)&at)->sin_addr
				       : (void *)&((struct sockaddr_in6 *)&at)->sin6_addr,
		       family_octets(family));
	close(fd);
	return source;
}
