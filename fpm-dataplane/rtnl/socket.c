/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The three rtnetlink sockets: for multicast events, for dumps, and for the changes during
 * a dump (changes.c). [rtnl]
 *
 * The kernel does not wait for a reader of events. Two measures keep events from being
 * lost: a receive buffer of 128 MiB, and a filter in the kernel that drops the copies of
 * zebra's own routes. With a full table in FRR these copies are nearly all events.
 */
#include <assert.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/rtproto.h"
#include "rtnl/impl.h"
#include "tap-bridge/netns.h"

#define EVENTS_BUFFER_BYTES  (128 << 20)
#define CHANGES_BUFFER_BYTES (4 << 20) /* some thousand events */
#define ROUND                256u /* system calls per round, so that timers get their turn */

#ifndef NETLINK_GET_STRICT_CHK
#define NETLINK_GET_STRICT_CHK 12
#endif

/*
 * Drop the copies of zebra's routes (rtproto_is_copy()), unless they replaced another
 * route, which may be the kernel's, or are for one source or TOS, which FPM does not carry.
 * Copies in the tables of rules are kept, too. The message has one octet for the table; it
 * is 252 for larger numbers. Routes of labels have no metric.
 */
void
events_filter(struct rtnl *r, bool tables)
{
	enum {
		TYPE = 4,
		FLAGS = 6,
		FAMILY = 16,
		SRC_LEN_AND_TOS = 16 + 2,
		TABLE = 16 + 4,
		PROTOCOL = 16 + 5,
		ATTRIBUTES = 16 + 12,
		FIND_ATTRIBUTE = SKF_AD_OFF + SKF_AD_NLATTR
	}; /* places in the message */
	/* BPF loads words of the network's byte order. */
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, TYPE),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __builtin_bswap16(RTM_NEWROUTE), 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __builtin_bswap16(RTM_DELROUTE), 0, 24),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, FLAGS),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, __builtin_bswap16(NLM_F_REPLACE), 22,
			 0),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, SRC_LEN_AND_TOS),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 20),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, PROTOCOL),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 11, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 42, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, RTPROT_FRR_PBR, 16, 0),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 186, 0, 15),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 198, 14, 0),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, FAMILY),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_MPLS, 7, 0),
		/* A: place of the attribute of type X, searched from place A on; 0: none */
		BPF_STMT(BPF_LD | BPF_IMM, ATTRIBUTES),
		BPF_STMT(BPF_LDX | BPF_IMM, RTA_PRIORITY),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)FIND_ATTRIBUTE),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 8, 0),
		BPF_STMT(BPF_MISC | BPF_TAX, 0),
		BPF_STMT(BPF_LD | BPF_W | BPF_IND, NLA_HDRLEN),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __builtin_bswap32(ZEBRA_METRIC), 0, 5),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, TABLE),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, RT_TABLE_MAIN, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, RT_TABLE_LOCAL, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, tables ? UINT32_MAX : 0),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
	};
	struct sock_fprog prog = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "netlink is host order");
	if (r->conf.from == ROUTES_FROM_KERNEL)
		return;
	if (setsockopt(r->events, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)) < 0)
		log_warn("rtnl: filter of events not attached error=\"%s\"",
			 strerror(errno));
}

static int
events_join(int fd)
{
	static const int group[] = {
		RTNLGRP_LINK,       RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR,
		RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE,  RTNLGRP_NEXTHOP,
		RTNLGRP_IPV4_RULE,  RTNLGRP_IPV6_RULE,   RTNLGRP_MPLS_ROUTE};

	for (unsigned int i = 0; i < sizeof(group) / sizeof(group[0]); i++)
		if (setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group[i],
			       sizeof(group[i])) < 0 &&
		    group[i] != RTNLGRP_NEXTHOP) /* Linux before 5.3 */
			return -errno;
	return 0;
}

/* Open a socket for events, with a receive buffer. Returns the descriptor or -errno. */
static int
listener_open(const struct rtnl *r, int bytes)
{
	struct sockaddr_nl any = {.nl_family = AF_NETLINK};
	int fd =
		netns_socket(r->netns, AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK, NETLINK_ROUTE);
	int rc;

	if (fd < 0)
		return fd;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) < 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	/*
	 * Bind to get a port number. Without one, the kernel considers this socket the
	 * sender of its events.
	 */
	if (bind(fd, (struct sockaddr *)&any, sizeof(any)) == 0)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

static int
events_open(struct rtnl *r)
{
	r->events = listener_open(r, EVENTS_BUFFER_BYTES);
	if (r->events < 0)
		return r->events;
	events_filter(r, false);
	return events_join(r->events);
}

int
dumps_open(struct rtnl *r)
{
	int on = 1;

	if (r->dumps >= 0)
		close(r->dumps);
	r->dumps =
		netns_socket(r->netns, AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK, NETLINK_ROUTE);
	if (r->dumps < 0) {
		int rc = r->dumps;

		r->dumps = -1;
		return rc;
	}
	/*
	 * Without this option the kernel ignores the filter of a dump, which then shows
	 * more.
	 */
	(void)setsockopt(r->dumps, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &on, sizeof(on));
	return 0;
}

int
sockets_open(struct rtnl *r)
{
	int rc = events_open(r);

	if (rc < 0)
		return rc;
	r->changes = listener_open(r, CHANGES_BUFFER_BYTES);
	return r->changes < 0 ? r->changes : dumps_open(r);
}

void
sockets_close(struct rtnl *r)
{
	if (r->events >= 0)
		close(r->events);
	if (r->dumps >= 0)
		close(r->dumps);
	if (r->changes >= 0)
		close(r->changes);
	r->events = r->dumps = r->changes = -1;
}

/* Call `fn` for the messages of one datagram. */
static void
datagram_split(struct rtnl *r, const void *data, size_t len,
	       void (*fn)(struct rtnl *r, const struct nlmsghdr *nlh))
{
	const struct nlmsghdr *nlh = data;
	int left = (int)len;

	for (; mnl_nlmsg_ok(nlh, left); nlh = mnl_nlmsg_next(nlh, &left))
		fn(r, nlh);
}

int
events_read(struct rtnl *r, void (*fn)(struct rtnl *r, const struct nlmsghdr *nlh))
{
	struct sockaddr_nl from[BURST];
	struct mmsghdr msg[BURST];
	struct iovec iov[BURST];
	int n = 0, total = 0;

	for (unsigned int i = 0; i < BURST; i++) {
		iov[i] =
			(struct iovec){r->burst + i * DUMP_BUFFER_BYTES, DUMP_BUFFER_BYTES};
		msg[i].msg_hdr = (struct msghdr){
			.msg_name = &from[i], .msg_iov = &iov[i], .msg_iovlen = 1};
	}
	for (unsigned int calls = 0; calls < ROUND; calls++) {
		for (unsigned int i = 0; i < BURST; i++)
			msg[i].msg_hdr.msg_namelen = sizeof(from[i]);
		n = recvmmsg(r->events, msg, BURST, MSG_DONTWAIT, NULL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? total : -ENOBUFS;
		for (int i = 0; i < n; i++) {
			if ((msg[i].msg_hdr.msg_flags & MSG_TRUNC) != 0)
				return -ENOBUFS;
			/*
			 * Other processes may send to this socket: accept only messages of
			 * the kernel.
			 */
			if (from[i].nl_pid == 0)
				datagram_split(r, iov[i].iov_base, msg[i].msg_len, fn);
		}
		total += n;
		if (kernel_queue_depth() > KERNEL_QUEUE_PAUSE_BYTES)
			break;
	}
	return total;
}
