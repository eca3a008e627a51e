/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hear the transactions of nf_tables. The kernel sends the messages of a transaction, then
 * NFT_MSG_NEWGEN with the generation that it makes. [filter]
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "filter/impl.h"
#include "netlink/attributes.h"

#define DATAGRAM_BYTES (64u << 10)
#define MESSAGES_MAX   (1u << 20) /* of a transaction: more is read as a table */
#define HEAR_MS        1000u /* for the event of a generation that the kernel has told of */
#define TABLE_NAME     1     /* the attribute with the table, in messages of all kinds */

int
filter_events_init(struct filter_events *ev, int fd, const struct filter_table *table,
		   unsigned int n_table)
{
	*ev = (struct filter_events){.fd = fd,
				     .table = table,
				     .n_table = n_table,
				     .datagram = malloc(DATAGRAM_BYTES)};
	return ev->datagram == NULL ? -ENOMEM : 0;
}

void
filter_events_fini(struct filter_events *ev)
{
	free(ev->datagram);
	free(ev->messages.octet);
	ev->datagram = NULL;
	ev->messages = (struct filter_dump){0};
}

static void
transaction_begin(struct filter_events *ev)
{
	ev->ours = ev->more = false;
	ev->messages.n = 0;
}

/* Take a message of the open transaction. */
static void
message_take(struct filter_events *ev, const struct nlmsghdr *nlh)
{
	unsigned int type = nlh->nlmsg_type & 0xff;

	if (filter_table_of(ev->table, ev->n_table, nlh, TABLE_NAME) == NULL)
		return;
	ev->ours = true;
	if ((type == NFT_MSG_NEWSETELEM || type == NFT_MSG_DELSETELEM) &&
	    ev->messages.n + nlh->nlmsg_len <= MESSAGES_MAX &&
	    filter_dump_append(&ev->messages, nlh) == 0)
		return;
	ev->more = true;
}

/* Take messages of the datagram. Returns true at the end of a transaction. */
static bool
datagram_take(struct filter_events *ev, struct filter_transaction *t)
{
	while (mnl_nlmsg_ok(ev->next, ev->left)) {
		const struct nlmsghdr *nlh = ev->next;
		uint32_t generation;

		ev->next = mnl_nlmsg_next(nlh, &ev->left);
		if (nlh->nlmsg_type >> 8 != NFNL_SUBSYS_NFTABLES)
			continue;
		if ((nlh->nlmsg_type & 0xff) != NFT_MSG_NEWGEN) {
			message_take(ev, nlh);
			continue;
		}
		if (attr_be32(message_attr(nlh, NFTA_GEN_ID), &generation) < 0)
			continue;
		*t = (struct filter_transaction){.generation = generation,
						 .ours = ev->ours,
						 .elements_only = !ev->more,
						 .messages = &ev->messages};
		ev->ended = true;
		return true;
	}
	ev->left = 0;
	return false;
}

int
filter_events_next(struct filter_events *ev, struct filter_transaction *t)
{
	if (ev->ended) {
		ev->ended = false;
		transaction_begin(ev);
	}
	while (!datagram_take(ev, t)) {
		struct sockaddr_nl from = {0};
		struct iovec iov = {ev->datagram, DATAGRAM_BYTES};
		struct msghdr msg = {.msg_name = &from,
				     .msg_namelen = sizeof(from),
				     .msg_iov = &iov,
				     .msg_iovlen = 1};
		ssize_t n = recvmsg(ev->fd, &msg, MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n < 0 || (msg.msg_flags & MSG_TRUNC) != 0) {
			transaction_begin(ev);
			return n < 0 ? -errno : -ENOBUFS;
		}
		if (from.nl_pid != 0)
			continue; /* other processes may send to this socket */
		ev->next = (const struct nlmsghdr *)ev->datagram;
		ev->left = (int)n;
	}
	return 1;
}

int
filter_events_hear(struct filter_events *ev, uint32_t before, uint32_t until,
		   bool (*is_ending)(void *ctx), void *ctx, uint32_t *heard)
{
	uint64_t begin = monotonic_ms();
	struct filter_transaction t;
	int rc;

	for (*heard = before; filter_generation_after(until, *heard);) {
		struct pollfd p = {.fd = ev->fd, .events = POLLIN};

		if (is_ending(ctx))
			return -ECANCELED;
		if (monotonic_ms() - begin > HEAR_MS)
			return -EAGAIN;
		(void)poll(&p, 1, 50);
		while ((rc = filter_events_next(ev, &t)) > 0) {
			if (!filter_generation_after(t.generation, *heard))
				continue;
			if (t.ours)
				return -EAGAIN;
			*heard = t.generation;
		}
		if (rc < 0)
			return -EAGAIN;
	}
	return 0;
}
