/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receive the transactions of nf_tables. The kernel sends the messages of a transaction,
 * then NFT_MSG_NEWGEN with the generation that it makes. [filter]
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
#define MESSAGES_MAX   (16u << 20) /* octets; after larger changes the tables are read */
#define AWAIT_MS       100u        /* wait for the event of the generation that was read */
#define HEAR_MS        1000u       /* wait for the event of a later generation */
#define TABLE_NAME     1 /* the attribute with the table's name, in all messages */

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
	free(ev->gathered.messages.octet);
	ev->datagram = NULL;
	ev->messages = ev->gathered.messages = (struct filter_dump){0};
}

static void
transaction_begin(struct filter_events *ev)
{
	ev->ours = ev->more = false;
	ev->messages.n = 0;
}

/*
 * Take a message of the open transaction. The end of an earlier transaction may be lost;
 * then the message has another generation, of which it carries the last 16 bits.
 */
static void
message_take(struct filter_events *ev, const struct nlmsghdr *nlh)
{
	const struct nfgenmsg *nf = mnl_nlmsg_get_payload(nlh);
	unsigned int type = nlh->nlmsg_type & 0xff;

	if (filter_table_of(ev->table, ev->n_table, nlh, TABLE_NAME) == NULL)
		return;
	if (ev->ours && nf->res_id != ev->generation_low)
		transaction_begin(ev);
	ev->generation_low = nf->res_id;
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
		/*
		 * If the generations differ, the messages belong to a transaction whose
		 * end was lost.
		 */
		ev->more |= ev->ours && ntohs(ev->generation_low) != (generation & 0xffff);
		ev->heard = generation;
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

void
filter_gather_begin(struct filter_events *ev, uint32_t generation)
{
	struct filter_gathered *g = &ev->gathered;

	g->from = g->heard = generation;
	g->spoiled = false;
	/*
	 * The kernel shows a generation before all its changes are in force, and announces
	 * it afterwards.
	 */
	g->awaits_from = filter_generation_after(generation, ev->heard);
	g->messages.n = 0;
}

static void
message_append(const struct nlmsghdr *nlh, void *ctx)
{
	struct filter_gathered *g = ctx;

	g->spoiled |= filter_dump_append(&g->messages, nlh) < 0;
}

/* Handle a transaction that arrived while the tables are read. */
static void
transaction_gather(struct filter_gathered *g, const struct filter_transaction *t)
{
	if (t->generation == g->from && g->awaits_from) {
		g->spoiled |= t->ours;
		g->awaits_from = false;
	}
	if (!filter_generation_after(t->generation, g->heard))
		return;
	g->heard = t->generation;
	if (!t->ours)
		return;
	if (!t->elements_only || g->messages.n + t->messages->n > MESSAGES_MAX)
		g->spoiled = true;
	else if (t->messages->n > 0)
		filter_dump_each(t->messages, message_append, g);
}

void
filter_gather(struct filter_events *ev)
{
	struct filter_transaction t = {0};
	int rc;

	while ((rc = filter_events_next(ev, &t)) > 0)
		transaction_gather(&ev->gathered, &t);
	if (rc < 0)
		ev->gathered.spoiled = true;
}

int
filter_gather_until(struct filter_events *ev, uint32_t until, bool (*is_ending)(void *ctx),
		    void *ctx)
{
	uint64_t begin = monotonic_ms();
	struct filter_gathered *g = &ev->gathered;

	for (filter_gather(ev);; filter_gather(ev)) {
		struct pollfd p = {.fd = ev->fd, .events = POLLIN};
		uint64_t took = monotonic_ms() - begin;
		bool more = filter_generation_after(until, g->heard);

		/* A generation that is older than the socket is not announced. */
		if (!more && (!g->awaits_from || ev->heard == 0 || took > AWAIT_MS))
			break;
		if (is_ending(ctx))
			return -ECANCELED;
		if (g->spoiled || took > HEAR_MS)
			return -EAGAIN;
		(void)poll(&p, 1, 50);
	}
	return g->spoiled ? -EAGAIN : 0;
}
