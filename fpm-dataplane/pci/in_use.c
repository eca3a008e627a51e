/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Find the uses that the machine makes of an interface. This code asks the kernel and reads
 * /proc, in `fpm-dataplane --prepare` and fpmctl, never in the running daemon. An address
 * or a route that cannot be examined counts as a use, because an operator connected through
 * that interface would be locked out. An SSH session counts only if /proc or the
 * environment shows it.
 */
#include "pci/device.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <ifaddrs.h>
#include <linux/rtnetlink.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/sysfs.h"

#define UPPERS_MAX  16  /* interfaces above an interface, and the interface itself */
#define SOCKETS_MAX 256 /* sockets of SSH daemons that are checked */
#define SSH_PORT    22
#define ESTABLISHED 1  /* Linux, net/tcp_states.h */
#define STRICT      12 /* NETLINK_GET_STRICT_CHK, since Linux 4.20 */

struct address {
	int family; /* AF_INET, AF_INET6; 0: none */
	uint8_t octet[16];
};

static size_t
address_size(const struct address *a)
{
	return a->family == AF_INET ? 4 : 16;
}

/* --- addresses of interfaces ---------------------------------------------------------- */

/*
 * Return true if the interface has a configured address. IPv6 link-local addresses do not
 * count, because the kernel creates them itself.
 */
static bool
interface_has_address(const char *ifname)
{
	struct ifaddrs *list, *a;
	bool found = false;

	if (getifaddrs(&list) < 0)
		return true;
	for (a = list; a != NULL && !found; a = a->ifa_next) {
		const struct sockaddr *sa = a->ifa_addr;

		if (sa == NULL || strcmp(a->ifa_name, ifname) != 0)
			continue;
		found = sa->sa_family == AF_INET ||
			(sa->sa_family == AF_INET6 &&
			 !IN6_IS_ADDR_LINKLOCAL(
				 &((const struct sockaddr_in6 *)sa)->sin6_addr));
	}
	freeifaddrs(list);
	return found;
}

/* Return true if the interface has the address. */
static bool
interface_owns_address(const char *ifname, const struct address *addr)
{
	struct ifaddrs *list, *a;
	bool found = false;

	if (getifaddrs(&list) < 0)
		return true;
	for (a = list; a != NULL && !found; a = a->ifa_next) {
		const void *octets;

		if (a->ifa_addr == NULL || a->ifa_addr->sa_family != addr->family ||
		    strcmp(a->ifa_name, ifname) != 0)
			continue;
		octets = addr->family == AF_INET
				 ? (void *)&((struct sockaddr_in *)a->ifa_addr)->sin_addr
				 : (void *)&((struct sockaddr_in6 *)a->ifa_addr)->sin6_addr;
		found = memcmp(octets, addr->octet, address_size(addr)) == 0;
	}
	freeifaddrs(list);
	return found;
}

/* --- routes --------------------------------------------------------------------------- */

struct route_ask {
	struct nlmsghdr nl;
	struct rtmsg rt;
	struct rtattr attr;
	uint8_t value[16];
};

static void
route_ask_put_attr(struct route_ask *ask, unsigned short type, const void *value,
		   size_t len)
{
	ask->attr.rta_type = type;
	ask->attr.rta_len = (unsigned short)RTA_LENGTH(len);
	memcpy(ask->value, value, len);
	ask->nl.nlmsg_len = (uint32_t)(NLMSG_LENGTH(sizeof(ask->rt)) + RTA_SPACE(len));
}

static bool
socket_close(int fd, bool answer)
{
	if (fd >= 0)
		close(fd);
	return answer;
}

/*
 * Call on_route(nl, ctx) for each route that the kernel returns, until on_route() returns
 * true. Return true if on_route() did, or if the kernel's answer is incomplete.
 */
static bool
routes_ask(const struct route_ask *ask, bool (*on_route)(struct nlmsghdr *nl, void *ctx),
	   void *ctx)
{
	static _Alignas(struct nlmsghdr) char buf[65536];
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), one = 1;
	bool dump = (ask->nl.nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;
	bool more = true;

	/* Without strict checking the kernel ignores RTA_OIF in a dump. */
	if (fd < 0 || setsockopt(fd, SOL_NETLINK, STRICT, &one, sizeof(one)) < 0 ||
	    send(fd, ask, ask->nl.nlmsg_len, 0) < 0)
		more = false;
	while (more) {
		ssize_t n = recv(fd, buf, sizeof(buf), 0);
		struct nlmsghdr *nl = (struct nlmsghdr *)buf;

		if (n <= 0)
			break;
		for (; more && NLMSG_OK(nl, (size_t)n); nl = NLMSG_NEXT(nl, n)) {
			bool is_route = nl->nlmsg_type == RTM_NEWROUTE;

			if (is_route && on_route(nl, ctx))
				return socket_close(fd, true);
			/*
			 * This is the end of the dump, or the answer for one route, such as
			 * the error ENETUNREACH.
			 */
			if (!dump || nl->nlmsg_type == NLMSG_DONE)
				return socket_close(fd, false);
			more = is_route;
		}
	}
	return socket_close(fd, true);
}

static bool
route_is_default(struct nlmsghdr *nl, void *ctx)
{
	const struct rtmsg *rt = NLMSG_DATA(nl);

	return rt->rtm_dst_len == 0 && rt->rtm_type == RTN_UNICAST;
}

/* Return true if a default route of any table uses the interface. */
static bool
interface_has_default_route(unsigned int ifindex)
{
	struct route_ask ask = {
		.nl = {.nlmsg_type = RTM_GETROUTE,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.rt = {.rtm_family = AF_INET},
	};

	route_ask_put_attr(&ask, RTA_OIF, &ifindex, sizeof(ifindex));
	if (routes_ask(&ask, route_is_default, NULL))
		return true;
	ask.rt.rtm_family = AF_INET6;
	return routes_ask(&ask, route_is_default, NULL);
}

static bool
route_uses_interface(struct nlmsghdr *nl, void *ctx)
{
	int len = (int)RTM_PAYLOAD(nl);
	const struct rtattr *attr = RTM_RTA(NLMSG_DATA(nl));

	for (; RTA_OK(attr, len); attr = RTA_NEXT(attr, len))
		if (attr->rta_type == RTA_OIF)
			return memcmp(RTA_DATA(attr), ctx, sizeof(unsigned int)) == 0;
	return false;
}

/* Return true if the kernel sends packets for the address through the interface. */
static bool
interface_routes_to(unsigned int ifindex, const struct address *addr)
{
	struct route_ask ask = {
		.nl = {.nlmsg_type = RTM_GETROUTE, .nlmsg_flags = NLM_F_REQUEST},
		.rt = {.rtm_family = (unsigned char)addr->family,
		       .rtm_dst_len = (unsigned char)(8 * address_size(addr))},
	};

	route_ask_put_attr(&ask, RTA_DST, addr->octet, address_size(addr));
	return routes_ask(&ask, route_uses_interface, &ifindex);
}

/* --- SSH sessions --------------------------------------------------------------------- */

struct session {
	struct address local, remote;
};

static struct address
address_parse(const char *text)
{
	struct address a = {.family = AF_INET};

	if (inet_pton(AF_INET, text, a.octet) == 1)
		return a;
	a.family = inet_pton(AF_INET6, text, a.octet) == 1 ? AF_INET6 : 0;
	return a;
}

/*
 * Parse an address of /proc/net/tcp: words of eight digits in the byte order of this
 * machine. A word that is stored as a number has its octets in network order in memory.
 */
static struct address
address_from_proc(const char *digits)
{
	static const uint8_t mapped[12] = {[10] = 0xff, 0xff};
	struct address a = {.family = strlen(digits) == 8 ? AF_INET : AF_INET6};

	for (size_t i = 0; i < address_size(&a) / 4; i++) {
		unsigned int word = 0;

		sscanf(digits + 8 * i, "%8x", &word);
		memcpy(a.octet + 4 * i, &word, sizeof(word));
	}
	/* IPv4-mapped address on an IPv6 socket: RFC 4291, 2.5.5.2 */
	if (a.family == AF_INET6 && memcmp(a.octet, mapped, sizeof(mapped)) == 0) {
		memmove(a.octet, a.octet + 12, 4);
		a.family = AF_INET;
	}
	return a;
}

/*
 * Add the inode numbers of the sockets that the process has open to inode[n..], if the
 * process is an SSH daemon. Return the new number of entries.
 */
static size_t
process_sockets_add(const char *pid, unsigned long *inode, size_t n)
{
	char path[300], text[64];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	sysfs_read_line(path, text, sizeof(text));
	if (strncmp(text, "sshd", 4) != 0 && strncmp(text, "dropbear", 8) != 0)
		return n;
	snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	dir = opendir(path);
	if (dir == NULL)
		return n;
	while (n < SOCKETS_MAX && (entry = readdir(dir)) != NULL) {
		ssize_t len = readlinkat(dirfd(dir), entry->d_name, text, sizeof(text) - 1);

		text[len < 0 ? 0 : len] = '\0';
		n += sscanf(text, "socket:[%lu]", &inode[n]) == 1;
	}
	closedir(dir);
	return n;
}

static size_t
ssh_sockets(unsigned long inode[SOCKETS_MAX])
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	size_t n = 0;

	while (proc != NULL && (entry = readdir(proc)) != NULL)
		if (isdigit((unsigned char)entry->d_name[0]))
			n = process_sockets_add(entry->d_name, inode, n);
	if (proc != NULL)
		closedir(proc);
	return n;
}

/* Return true if packets of the session pass the interface. */
static bool
session_passes(const char *ifname, unsigned int ifindex, const struct session *s)
{
	return s->local.family != 0 && (interface_owns_address(ifname, &s->local) ||
					interface_routes_to(ifindex, &s->remote));
}

/*
 * Return true if the environment shows that this process was started in an SSH session that
 * passes the interface. sudo often removes this variable, so sockets are searched, too.
 */
static bool
interface_has_own_session(const char *ifname, unsigned int ifindex)
{
	const char *text = getenv("SSH_CONNECTION");
	char local[64], remote[64];
	struct session s;

	if (text == NULL || sscanf(text, "%63s %*s %63s", remote, local) != 2)
		return false;
	s.local = address_parse(local);
	s.remote = address_parse(remote);
	return s.remote.family != 0 && session_passes(ifname, ifindex, &s);
}

static bool
interface_has_session_in(const char *table, const unsigned long *inode, size_t n,
			 const char *ifname, unsigned int ifindex)
{
	FILE *f = fopen(table, "re");
	char line[256], local[40], remote[40];
	bool found = false;

	while (f != NULL && !found && fgets(line, sizeof(line), f) != NULL) {
		unsigned int port, state;
		unsigned long number;
		bool is_ssh = false;
		struct session s;

		if (sscanf(line,
			   " %*u: %32[0-9A-F]:%x %32[0-9A-F]:%*x %x %*s %*s %*s %*u %*u "
			   "%lu",
			   local, &port, remote, &state, &number) != 5 ||
		    state != ESTABLISHED)
			continue;
		for (size_t i = 0; i < n && !is_ssh; i++)
			is_ssh = inode[i] == number;
		s = (struct session){address_from_proc(local), address_from_proc(remote)};
		found = (is_ssh || port == SSH_PORT) && session_passes(ifname, ifindex, &s);
	}
	if (f != NULL)
		fclose(f);
	return found;
}

static bool
interface_has_session(const char *ifname, unsigned int ifindex)
{
	unsigned long inode[SOCKETS_MAX];
	size_t n = ssh_sockets(inode);

	return interface_has_own_session(ifname, ifindex) ||
	       interface_has_session_in("/proc/net/tcp", inode, n, ifname, ifindex) ||
	       interface_has_session_in("/proc/net/tcp6", inode, n, ifname, ifindex);
}

/* --- all uses ------------------------------------------------------------------------- */

/*
 * Write the bonds, bridges, VLANs and VRFs above an interface to out[]. Return their
 * number, `room` at most.
 */
static size_t
interface_uppers(const char *ifname, char out[][IF_NAMESIZE], size_t room)
{
	char path[128];
	glob_t found = {0};
	size_t n = 0;

	snprintf(path, sizeof(path), "/sys/class/net/%.*s/upper_*", IF_NAMESIZE - 1,
		 ifname);
	glob(path, 0, NULL, &found);
	for (size_t i = 0; i < found.gl_pathc && n < room; i++)
		snprintf(out[n++], IF_NAMESIZE, "%s",
			 strstr(found.gl_pathv[i], "/upper_") + strlen("/upper_"));
	globfree(&found);
	return n;
}

static void
use_add(struct device_use *use, bool *what, bool is_so, const char *ifname)
{
	if (!is_so)
		return;
	*what = true;
	if (use->by[0] == '\0')
		snprintf(use->by, sizeof(use->by), "%.*s", IF_NAMESIZE - 1, ifname);
}

void
device_use_of(const char *ifname, struct device_use *use)
{
	char name[UPPERS_MAX][IF_NAMESIZE];
	size_t n = 1;

	*use = (struct device_use){0};
	snprintf(name[0], sizeof(name[0]), "%s", ifname);
	for (size_t i = 0; i < n; i++)
		n += interface_uppers(name[i], name + n, UPPERS_MAX - n);
	if (n > 1)
		snprintf(use->upper, sizeof(use->upper), "%s", name[1]);
	for (size_t i = 0; i < n; i++)
		use_add(use, &use->ssh,
			interface_has_session(name[i], if_nametoindex(name[i])), name[i]);
	for (size_t i = 0; i < n; i++)
		use_add(use, &use->default_route,
			interface_has_default_route(if_nametoindex(name[i])), name[i]);
	for (size_t i = 0; i < n; i++)
		use_add(use, &use->address, interface_has_address(name[i]), name[i]);
}

bool
device_use_text(const char *ifname, const struct device_use *use, char *why,
		size_t why_size)
{
	if (use->ssh)
		snprintf(why, why_size, "an SSH session comes in by %s", use->by);
	else if (use->default_route)
		snprintf(why, why_size,
			 "%s carries the default route; give that to another interface "
			 "first",
			 use->by);
	else if (use->address)
		snprintf(why, why_size,
			 "%s has an address, so the machine uses it; take that away first "
			 "(ip addr flush dev %s)",
			 use->by, use->by);
	else if (use->upper[0] != '\0')
		snprintf(why, why_size,
			 "%s is part of %s, so the machine uses it; take it out there "
			 "first",
			 ifname, use->upper);
	else
		return false;
	return true;
}
