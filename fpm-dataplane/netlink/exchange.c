/* SPDX-License-Identifier: BSD-3-Clause */
/* exchange: see exchange.h. */
#include "netlink/exchange.h"

#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"

/* Return the error in the last message of an answer, or 0. */
static int
answer_error(const struct nlmsghdr *nlh)
{
	int error = 0;

	if (mnl_nlmsg_get_payload_len(nlh) >= sizeof(error))
		memcpy(&error, mnl_nlmsg_get_payload(nlh), sizeof(error));
	return error < 0 ? error : 0;
}

/* Take one datagram. Returns 1 at the end of the answer, 0 if more follows, or -errno. */
static int
datagram_take(struct nl_exchange *x, size_t n)
{
	const struct nlmsghdr *nlh = (const struct nlmsghdr *)x->buffer;
	int left = (int)n, rc;

	for (; mnl_nlmsg_ok(nlh, left); nlh = mnl_nlmsg_next(nlh, &left)) {
		if (nlh->nlmsg_seq != x->seq)
			continue; /* answers a request that was given up */
		x->changed |= (nlh->nlmsg_flags & NLM_F_DUMP_INTR) != 0;
		if (nlh->nlmsg_type == NLMSG_DONE || nlh->nlmsg_type == NLMSG_ERROR) {
			rc = answer_error(nlh);
			return rc < 0 ? rc : 1;
		}
		if (nlh->nlmsg_type < NLMSG_MIN_TYPE)
			continue;
		rc = x->take(nlh, x->ctx);
		if (rc < 0)
			return rc;
		if ((nlh->nlmsg_flags & NLM_F_MULTI) == 0)
			return 1;
	}
	return 0;
}

int
nl_exchange(struct nl_exchange *x, struct nlmsghdr *request)
{
	uint64_t begin = monotonic_ms();
	int rc = 0;

	x->changed = false;
	if (x->is_ending(x->ctx))
		return -ECANCELED;
	request->nlmsg_seq = ++x->seq;
	if (send(x->fd, request, request->nlmsg_len, 0) < 0)
		return -errno;
	while (rc == 0) {
		struct sockaddr_nl from = {0};
		struct iovec iov = {x->buffer, x->buffer_bytes};
		struct msghdr msg = {.msg_name = &from,
				     .msg_namelen = sizeof(from),
				     .msg_iov = &iov,
				     .msg_iovlen = 1};
		ssize_t n = recvmsg(x->fd, &msg, 0);
		int error = errno;

		if (x->is_ending(x->ctx))
			return -ECANCELED;
		if (n < 0 && error == EAGAIN && monotonic_ms() - begin >= x->wait_ms)
			return -ETIMEDOUT;
		if (n < 0 && (error == EINTR || error == EAGAIN))
			continue;
		if (n < 0)
			return -error;
		begin = monotonic_ms();
		if ((msg.msg_flags & MSG_TRUNC) != 0)
			return -EMSGSIZE;
		if (from.nl_pid == 0) /* other processes may send to this socket */
			rc = datagram_take(x, (size_t)n);
	}
	return rc < 0 ? rc : 0;
}
