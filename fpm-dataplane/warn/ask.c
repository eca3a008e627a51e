/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Send netlink requests to the kernel, and handle their answers. [warn]
 *
 * The thread waits some seconds for an answer. No other thread waits for it, and it is
 * RCU-offline meanwhile. When the daemon ends, the wait and the scan end within LOOK_MS, or
 * after the present system call: a dump returns 32 KiB at a time.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "warn/warn_impl.h"

#define ANSWER_MS 2000u /* for one part of an answer */
#define LOOK_MS   50u   /* period of the check whether the daemon ends */
#define TRIES_MAX 5u    /* attempts at a dump that changes of the tables interrupt */

int
ask_open(int protocol)
{
	struct timeval wait = {.tv_usec = LOOK_MS * 1000};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	return fd;
}

/* Return the error in the last message of an answer, or 0. */
static int
answer_error(const struct nlmsghdr *nlh)
{
	int error = 0;

	if (mnl_nlmsg_get_payload_len(nlh) >= sizeof(error))
		memcpy(&error, mnl_nlmsg_get_payload(nlh), sizeof(error));
	return error < 0 ? error : 0;
}

/*
 * Handle one datagram. Returns 1 at the end of the answer, 0 if more follows, or -errno:
 * -EINTR if the tables changed meanwhile.
 */
static int
answer_take(struct warn *w, size_t len, bool *changed, ask_fn fn, void *ctx)
{
	const struct nlmsghdr *nlh = (const struct nlmsghdr *)w->buffer;
	int left = (int)len;

	for (; mnl_nlmsg_ok(nlh, left); nlh = mnl_nlmsg_next(nlh, &left)) {
		if (nlh->nlmsg_seq != w->seq)
			continue; /* answers a request that was given up */
		*changed |= (nlh->nlmsg_flags & NLM_F_DUMP_INTR) != 0;
		if (nlh->nlmsg_type == NLMSG_DONE || nlh->nlmsg_type == NLMSG_ERROR) {
			int error = answer_error(nlh);

			return error < 0 ? error : *changed ? -EINTR : 1;
		}
		if (nlh->nlmsg_type >= NLMSG_MIN_TYPE)
			fn(w, nlh, ctx);
		if ((nlh->nlmsg_flags & NLM_F_MULTI) == 0)
			return 1;
	}
	return 0;
}

static int
dump_once(struct warn *w, int fd, struct nlmsghdr *request, ask_fn fn, void *ctx)
{
	uint64_t begin = monotonic_ms();
	bool changed = false;
	int rc = 0;

	if (ask_is_ending(w))
		return -ECANCELED;
	request->nlmsg_seq = ++w->seq;
	if (send(fd, request, request->nlmsg_len, 0) < 0)
		return -errno;
	while (rc == 0) {
		struct sockaddr_nl from;
		struct iovec iov = {w->buffer, ASK_BUFFER_BYTES};
		struct msghdr msg = {.msg_name = &from,
				     .msg_namelen = sizeof(from),
				     .msg_iov = &iov,
				     .msg_iovlen = 1};
		ssize_t n = recvmsg(fd, &msg, 0);

		if (ask_is_ending(w))
			return -ECANCELED;
		if (n < 0 && errno == EAGAIN && monotonic_ms() - begin >= ANSWER_MS)
			return -ETIMEDOUT;
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0)
			return -errno;
		begin = monotonic_ms();
		if ((msg.msg_flags & MSG_TRUNC) != 0)
			return -EMSGSIZE;
		/*
		 * Other processes may send to this socket: accept only messages of the
		 * kernel.
		 */
		if (from.nl_pid == 0)
			rc = answer_take(w, (size_t)n, &changed, fn, ctx);
	}
	return rc;
}

bool
ask_is_ending(const struct warn *w)
{
	return worker_is_ending(w->w);
}

int
ask_dump(struct warn *w, int fd, struct nlmsghdr *request, ask_fn fn, void *ctx)
{
	struct list_mark mark = list_mark(&w->list);
	int rc = -EINTR;

	for (unsigned int i = 0; i < TRIES_MAX && rc == -EINTR; i++) {
		list_back(&w->list, &mark);
		rc = dump_once(w, fd, request, fn, ctx);
	}
	return rc < 0 ? rc : 0;
}

void
unread_add(struct warn *w, const char *part, int error)
{
	char in_linux[128];

	snprintf(in_linux, sizeof(in_linux),
		 "The kernel did not tell whether it has such configuration: %s.",
		 strerror(-error));
	list_add(&w->list, WARNING_UNREAD, part, in_linux,
		 "The dataplane obeys nothing of it, and cannot warn of it.");
}
