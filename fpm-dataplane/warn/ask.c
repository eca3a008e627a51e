/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Send netlink requests to the kernel, and handle their answers. [warn]
 *
 * The thread waits some seconds for an answer. It is RCU-offline meanwhile, and no other
 * thread waits for this thread. When the daemon ends, the wait and the scan end within
 * LOOK_MS, or after the present system call: a dump returns 32 KiB at a time.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/log.h"
#include "netlink/exchange.h"
#include "warn/impl.h"

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

/* A dump, and the function that takes its messages. */
struct dump {
	struct warn *w;
	ask_fn fn;
	void *ctx;
};

static int
dump_take(const struct nlmsghdr *nlh, void *ctx)
{
	const struct dump *d = ctx;

	d->fn(d->w, nlh, d->ctx);
	return 0;
}

static bool
dump_is_ending(void *ctx)
{
	const struct dump *d = ctx;

	return ask_is_ending(d->w);
}

/* Ask once. Returns -EINTR if the tables changed meanwhile. */
static int
dump_once(struct dump *d, int fd, struct nlmsghdr *request)
{
	struct nl_exchange x = {.fd = fd,
				.buffer = d->w->buffer,
				.buffer_bytes = ASK_BUFFER_BYTES,
				.wait_ms = ANSWER_MS,
				.seq = d->w->seq++,
				.is_ending = dump_is_ending,
				.take = dump_take,
				.ctx = d};
	int rc = nl_exchange(&x, request);

	return rc == 0 && x.changed ? -EINTR : rc;
}

bool
ask_is_ending(const struct warn *w)
{
	return worker_is_ending(w->w);
}

int
ask_dump(struct warn *w, int fd, struct nlmsghdr *request, ask_fn fn, void *ctx)
{
	struct dump d = {w, fn, ctx};
	struct list_mark mark = list_mark(&w->list);
	int rc = -EINTR;

	for (unsigned int i = 0; i < TRIES_MAX && rc == -EINTR; i++) {
		list_back(&w->list, &mark);
		rc = dump_once(&d, fd, request);
	}
	return rc;
}

void
unread_add(struct warn *w, const char *part, int error)
{
	char in_linux[128];

	snprintf(in_linux, sizeof(in_linux),
		 "The kernel did not report whether it has such configuration: %s.",
		 strerror(-error));
	list_add(&w->list, WARNING_UNREAD, part, in_linux,
		 "The dataplane ignores such configuration, and cannot report it.");
}
