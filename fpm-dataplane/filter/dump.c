/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Read tables of nf_tables: chains, sets, their elements, rules, named objects. The
 * generation is read before and after. If it differs, the events show whether one of the
 * tables changed. So all messages belong to one ruleset, even if other tables change all
 * the time. [filter]
 */
#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "filter/impl.h"
#include "netlink/attributes.h"
#include "netlink/exchange.h"

#define ANSWER_BYTES (64u << 10)
#define ANSWER_MS    3000u
#define TRIES_MAX    8u  /* attempts to read a table that changes meanwhile */
#define DUMPS_MAX    64u /* attempts at a dump; a change of any table interrupts it */
/* for all tables together; there is a limit because other threads wait for this thread */
#define READ_MS 30000u

struct reader {
	struct nl_exchange kernel;
	struct filter_events *events;
	const struct filter_table *table;
	struct filter_dump *dump;
	uint64_t begin; /* milliseconds */
	bool (*is_ending)(void *ctx);
	void *ctx;
	uint32_t generation, flags; /* of the last answer */
};

/* Take one message of an answer. Returns 0 or -errno. */
static int
message_take(const struct nlmsghdr *nlh, void *ctx)
{
	struct reader *rd = ctx;
	uint32_t number = 0;

	switch (nlh->nlmsg_type & 0xff) {
	case NFT_MSG_NEWGEN:
		if (attr_be32(message_attr(nlh, NFTA_GEN_ID), &number) < 0)
			return -EBADMSG;
		rd->generation = number;
		return 0;
	case NFT_MSG_NEWTABLE:
		(void)attr_be64(message_attr(nlh, NFTA_TABLE_HANDLE),
				&rd->dump->table_handle);
		if (attr_be32(message_attr(nlh, NFTA_TABLE_FLAGS), &number) == 0)
			rd->flags = number;
		return 0;
	default:
		return filter_dump_append(rd->dump, nlh);
	}
}

static bool
reader_is_ending(void *ctx)
{
	const struct reader *rd = ctx;

	return rd->is_ending(rd->ctx);
}

static bool
in_time(const struct reader *rd)
{
	return monotonic_ms() - rd->begin < READ_MS;
}

/* Ask for a dump until no transaction interrupts it. */
static int
dump_ask(struct reader *rd, struct nlmsghdr *request)
{
	size_t begin = rd->dump->n;
	int rc = -EAGAIN;

	for (unsigned int i = 0; i < DUMPS_MAX && rc == -EAGAIN && in_time(rd); i++) {
		rd->dump->n = begin;
		rc = nl_exchange(&rd->kernel, request);
		if (rd->kernel.changed && rc != -ECANCELED)
			rc = -EAGAIN;
		filter_gather(rd->events); /* before the buffer of its socket is full */
	}
	return rc;
}

/* Send a request of type `type`, with up to two texts as attributes. */
static int
ask_about(struct reader *rd, unsigned int type, bool all, unsigned int a,
	  const char *text_a, unsigned int b, const char *text_b)
{
	uint8_t buf[MNL_ALIGN(sizeof(struct nlmsghdr) + sizeof(struct nfgenmsg)) +
		    2 * (FILTER_NAME + 8)] __attribute__((aligned(4))) = {0};
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct nfgenmsg *nf = mnl_nlmsg_put_extra_header(nlh, sizeof(*nf));

	nlh->nlmsg_type = (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type);
	nlh->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | (all ? NLM_F_DUMP : 0));
	nf->nfgen_family = rd->table->family;
	nf->version = NFNETLINK_V0;
	if (text_a != NULL)
		mnl_attr_put_strz(nlh, (uint16_t)a, text_a);
	if (text_b != NULL)
		mnl_attr_put_strz(nlh, (uint16_t)b, text_b);
	return all ? dump_ask(rd, nlh) : nl_exchange(&rd->kernel, nlh);
}

/*
 * Ask for the elements of each set whose message is in [from, to) of the dump. The names
 * are copied because the memory of the dump may move meanwhile.
 */
static int
elements_ask(struct reader *rd, size_t from, size_t to)
{
	int rc = 0;

	for (size_t at = from; at < to && rc == 0;) {
		const struct nlmsghdr *nlh =
			(const struct nlmsghdr *)(rd->dump->octet + at);
		const char *table = rd->table->name;
		char of[FILTER_NAME], name[FILTER_NAME];

		at += MNL_ALIGN(nlh->nlmsg_len);
		attr_text(message_attr(nlh, NFTA_SET_TABLE), of, sizeof(of));
		attr_text(message_attr(nlh, NFTA_SET_NAME), name, sizeof(name));
		if (strcmp(of, table) == 0)
			rc = ask_about(rd, NFT_MSG_GETSETELEM, true,
				       NFTA_SET_ELEM_LIST_TABLE, table,
				       NFTA_SET_ELEM_LIST_SET, name);
	}
	return rc;
}

/* Request all objects of a table. */
static int
table_ask(struct reader *rd)
{
	const char *table = rd->table->name;
	size_t sets;
	int rc;

	rd->dump->n = 0;
	rd->flags = 0;
	rc = ask_about(rd, NFT_MSG_GETTABLE, false, NFTA_TABLE_NAME, table, 0, NULL);
	rd->dump->missing = rc == -ENOENT && rd->table->number > 0;
	if (rd->dump->missing)
		return 0;
	if (rc == 0)
		rc = ask_about(rd, NFT_MSG_GETCHAIN, true, 0, NULL, 0, NULL);
	if (rc == 0)
		rc = ask_about(rd, NFT_MSG_GETOBJ, true, NFTA_OBJ_TABLE, table, 0, NULL);
	if (rc == 0)
		rc = ask_about(rd, NFT_MSG_GETRULE, true, NFTA_RULE_TABLE, table, 0, NULL);
	sets = rd->dump->n;
	if (rc == 0)
		rc = ask_about(rd, NFT_MSG_GETSET, true, NFTA_SET_TABLE, table, 0, NULL);
	if (rc == 0)
		rc = elements_ask(rd, sets, rd->dump->n);
	rd->dump->dormant = (rd->flags & NFT_TABLE_F_DORMANT) != 0;
	return rc;
}

static int
generation_ask(struct reader *rd)
{
	return ask_about(rd, NFT_MSG_GETGEN, false, 0, NULL, 0, NULL);
}

static int
read_once(struct reader *rd, struct filter_dump *dump)
{
	struct filter_events *ev = rd->events;
	int rc, again;

	filter_gather(ev);
	rc = generation_ask(rd);
	filter_gather_begin(ev, rd->generation);
	for (unsigned int i = 0; i < ev->n_table && rc == 0; i++) {
		rd->table = &ev->table[i];
		rd->dump = &dump[i];
		rc = table_ask(rd);
	}
	if (rc == -ECANCELED)
		return rc;
	again = generation_ask(rd);
	if (again < 0)
		return rc < 0 ? rc : again;
	/* An error about a table that changed meanwhile means nothing: read again. */
	again = filter_gather_until(ev, rd->generation, rd->is_ending, rd->ctx);
	for (unsigned int i = 0; i < ev->n_table; i++)
		dump[i].generation = ev->gathered.heard;
	return again < 0 ? again : rc;
}

int
filter_dump_read(int fd, struct filter_events *events, const uint32_t *known,
		 struct filter_dump *dump, bool (*is_ending)(void *ctx), void *ctx)
{
	struct reader rd = {.events = events,
			    .table = events->table,
			    .dump = dump,
			    .is_ending = is_ending,
			    .ctx = ctx,
			    .begin = monotonic_ms()};
	int rc = -EAGAIN;

	rd.kernel = (struct nl_exchange){.fd = fd,
					 .buffer = malloc(ANSWER_BYTES),
					 .buffer_bytes = ANSWER_BYTES,
					 .wait_ms = ANSWER_MS,
					 .is_ending = reader_is_ending,
					 .take = message_take,
					 .ctx = &rd};
	if (rd.kernel.buffer == NULL)
		return -ENOMEM;
	/* Answers to requests of an earlier call have smaller numbers. */
	rd.kernel.seq = (uint32_t)monotonic_ms() << 8;
	if (known != NULL && generation_ask(&rd) == 0 && rd.generation == *known)
		rc = -EALREADY;
	for (unsigned int i = 0; i < TRIES_MAX && rc == -EAGAIN && in_time(&rd); i++)
		rc = read_once(&rd, dump);
	free(rd.kernel.buffer);
	return rc;
}
