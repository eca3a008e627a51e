/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transactions of nf_tables as the kernel announces them: where a transaction ends, which
 * changes it has, and how the reader notices lost messages. The test plays the kernel and
 * the clock.
 *
 * link: fpm-dataplane/filter/attr.c fpm-dataplane/filter/messages.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "filter_messages.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* --- functions that this program replaces --------------------------------------------- */

static bool no_memory;    /* there is no memory for datagrams and messages */
static bool only_count;   /* messages are counted, and not stored */
static int receive_errno; /* error of the next recvmsg(); 0: no error */
static uint64_t now_ms;
static unsigned int n_polls;
static void (*on_poll)(void);

static void *
memory_get(size_t bytes)
{
	return no_memory ? NULL : malloc(bytes);
}

static int
dump_append(struct filter_dump *d, const struct nlmsghdr *nlh)
{
	if (only_count) {
		d->n += nlh->nlmsg_len;
		return 0;
	}
	return no_memory ? -ENOMEM : filter_dump_append(d, nlh);
}

static ssize_t
message_receive(int fd, struct msghdr *msg, int flags)
{
	if (receive_errno == 0)
		return recvmsg(fd, msg, flags);
	errno = receive_errno;
	receive_errno = 0;
	return -1;
}

static uint64_t
clock_ms(void)
{
	return now_ms;
}

/* Let the time limit of poll() pass, then call `on_poll`. */
static int
poll_wait(struct pollfd *p, nfds_t n, int ms)
{
	assert_int_equal(n, 1);
	assert_int_equal(p->events, POLLIN);
	assert_int_equal(ms, 50);
	now_ms += 50;
	n_polls++;
	if (on_poll != NULL)
		on_poll();
	return 0;
}

#include "base/clock.h"
#define malloc             memory_get
#define filter_dump_append dump_append
#define recvmsg            message_receive
#define monotonic_ms       clock_ms
#define poll               poll_wait
#include "filter/events.c"
#undef malloc
#undef filter_dump_append
#undef recvmsg

/* --- the kernel ----------------------------------------------------------------------- */

static const struct filter_table tables[] = {{.family = NFPROTO_INET, .name = "t"},
					     {.family = NFPROTO_IPV4, .name = "u"}};
static struct filter_events ev;
static struct filter_transaction t;
static struct messages m;
static int kernel = -1, fd = -1;

/* Write a message of transaction `generation` about a table. */
static void
put(unsigned int type, const char *table, uint8_t family, uint32_t generation)
{
	struct nfgenmsg *nf;

	m.nlh = mnl_nlmsg_put_header(m.octet + m.n);
	m.nlh->nlmsg_type = (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type);
	nf = mnl_nlmsg_put_extra_header(m.nlh, sizeof(*nf));
	nf->nfgen_family = family;
	nf->res_id = htons((uint16_t)generation);
	mnl_attr_put_strz(m.nlh, 1, table);
	m.n += MNL_ALIGN(m.nlh->nlmsg_len);
}

/* Write a message about an element of table t. */
static void
element(uint32_t generation)
{
	put(NFT_MSG_NEWSETELEM, "t", NFPROTO_INET, generation);
}

/* Write the end of transaction `generation`. */
static void
end(uint32_t generation)
{
	struct nfgenmsg *nf;

	m.nlh = mnl_nlmsg_put_header(m.octet + m.n);
	m.nlh->nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWGEN;
	nf = mnl_nlmsg_put_extra_header(m.nlh, sizeof(*nf));
	nf->res_id = htons((uint16_t)generation);
	mnl_attr_put_u32(m.nlh, NFTA_GEN_ID, htonl(generation));
	m.n += MNL_ALIGN(m.nlh->nlmsg_len);
}

/* Send all written messages as one datagram. */
static void
send_all(void)
{
	assert_int_equal(send(kernel, m.octet, m.n, 0), (ssize_t)m.n);
	m.n = 0;
}

/* Assert that the next transaction is `generation`, with `n` messages about elements. */
static void
next_is(uint32_t generation, bool ours, bool elements_only, unsigned int n)
{
	size_t bytes = 0;

	assert_int_equal(filter_events_next(&ev, &t), 1);
	assert_int_equal(t.generation, generation);
	assert_int_equal(ev.heard, generation);
	assert_int_equal(t.ours, ours);
	assert_int_equal(t.elements_only, elements_only);
	element(0);
	bytes = MNL_ALIGN(m.nlh->nlmsg_len);
	m.n -= bytes;
	assert_int_equal(t.messages->n, n * bytes);
	for (unsigned int i = 0; i < n; i++) {
		const struct nlmsghdr *nlh = (const void *)(t.messages->octet + i * bytes);

		assert_int_equal(nlh->nlmsg_len, m.nlh->nlmsg_len);
		assert_true((nlh->nlmsg_type & 0xff) == NFT_MSG_NEWSETELEM ||
			    (nlh->nlmsg_type & 0xff) == NFT_MSG_DELSETELEM);
	}
}

static void
no_more(void)
{
	assert_int_equal(filter_events_next(&ev, &t), 0);
}

static int
up(void **state)
{
	int pair[2], room = 1 << 20;

	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
	kernel = pair[0];
	fd = pair[1];
	setsockopt(kernel, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	m.n = 0;
	no_memory = only_count = false;
	receive_errno = 0;
	now_ms = 1000000;
	n_polls = 0;
	on_poll = NULL;
	return filter_events_init(&ev, fd, tables, 2);
}

static int
down(void **state)
{
	filter_events_fini(&ev);
	assert_null(ev.datagram);
	assert_null(ev.messages.octet);
	assert_null(ev.gathered.messages.octet);
	close(kernel);
	close(fd);
	return 0;
}

/* --- transactions --------------------------------------------------------------------- */

static void
without_memory_there_is_no_reader(void **state)
{
	struct filter_events none;

	no_memory = true;
	assert_int_equal(filter_events_init(&none, fd, tables, 2), -ENOMEM);
	filter_events_fini(&none);
}

static void
a_transaction_has_the_messages_before_its_end(void **state)
{
	no_more();
	element(5);
	put(NFT_MSG_DELSETELEM, "t", NFPROTO_INET, 5);
	end(5);
	send_all();
	next_is(5, true, true, 2);
	no_more();
	/* The next transaction does not have the messages of the one before. */
	element(6);
	end(6);
	send_all();
	next_is(6, true, true, 1);
	/* A transaction of other tables, and one without messages. */
	put(NFT_MSG_NEWRULE, "t", NFPROTO_IPV4, 7);
	put(NFT_MSG_NEWRULE, "u", NFPROTO_INET, 7);
	put(NFT_MSG_NEWRULE, "other", NFPROTO_INET, 7);
	end(7);
	end(8);
	send_all();
	next_is(7, false, true, 0);
	next_is(8, false, true, 0);
	no_more();
}

static void
all_but_elements_needs_the_whole_table(void **state)
{
	static const unsigned int type[] = {NFT_MSG_NEWRULE,  NFT_MSG_DELRULE,
					    NFT_MSG_NEWCHAIN, NFT_MSG_NEWSET,
					    NFT_MSG_DELTABLE, NFT_MSG_NEWOBJ};
	uint32_t generation = 10;

	for (unsigned int i = 0; i < sizeof(type) / sizeof(type[0]); i++, generation++) {
		element(generation);
		put(type[i], "u", NFPROTO_IPV4, generation);
		end(generation);
		send_all();
		next_is(generation, true, false, 1);
	}
	/* The next transaction has elements alone again. */
	element(generation);
	end(generation);
	send_all();
	next_is(generation, true, true, 1);
}

static void
a_transaction_may_be_in_many_datagrams_and_a_datagram_have_many(void **state)
{
	element(20);
	send_all();
	no_more();
	element(20);
	send_all();
	no_more();
	element(20);
	end(20);
	element(21);
	end(21);
	element(22);
	send_all();
	next_is(20, true, true, 3);
	next_is(21, true, true, 1);
	no_more();
	end(22);
	send_all();
	next_is(22, true, true, 1);
	no_more();
}

static void
the_lost_end_of_a_transaction_shows(void **state)
{
	/*
	 * The end of 30 is lost, and a message of 31 follows. 31 has only its own message.
	 */
	element(30);
	element(31);
	end(31);
	send_all();
	next_is(31, true, true, 1);
	/*
	 * The end of 32 is lost, and the end of 33 follows. The whole table must be read.
	 */
	element(32);
	end(33);
	send_all();
	next_is(33, true, false, 1);
	/* 34 changes another table only, so the loss of its end does not matter. */
	put(NFT_MSG_NEWRULE, "other", NFPROTO_INET, 34);
	end(35);
	send_all();
	next_is(35, false, true, 0);
	/* A message has only the low 16 bits of its generation. */
	element(0x10004);
	end(0x10004);
	element(0x20005);
	end(0x20006);
	send_all();
	next_is(0x10004, true, true, 1);
	next_is(0x20006, true, false, 1);
}

static void
other_messages_and_strangers_are_ignored(void **state)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = "\0test_filter_events"},
			   stranger = {.sun_family = AF_UNIX, .sun_path = "\0strange"};
	/* The addresses must not be longer, because the reader has no room for more. */
	socklen_t len = sizeof(struct sockaddr_nl);
	int other = socket(AF_UNIX, SOCK_DGRAM, 0);

	element(40);
	m.nlh->nlmsg_type = NFNL_SUBSYS_CTNETLINK << 8 | NFT_MSG_NEWRULE;
	end(40);
	m.nlh->nlmsg_len = NLMSG_HDRLEN + sizeof(struct nfgenmsg); /* no NFTA_GEN_ID */
	m.n -= 8;
	end(41);
	send_all();
	next_is(41, false, true, 0);
	/* The sender of a datagram is not the kernel if it has an address. */
	assert_int_equal(bind(other, (struct sockaddr *)&stranger, len), 0);
	close(fd);
	fd = ev.fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	end(42);
	assert_int_equal(sendto(other, m.octet, m.n, 0, (struct sockaddr *)&at, sizeof(at)),
			 (ssize_t)m.n);
	no_more();
	assert_int_equal(ev.heard, 41);
	close(other);
}

static void
what_is_lost_is_told_and_ends_the_transaction(void **state)
{
	element(50);
	send_all();
	no_more();
	receive_errno = ENOBUFS;
	assert_int_equal(filter_events_next(&ev, &t), -ENOBUFS);
	end(50);
	send_all();
	next_is(50, false, true, 0);
	/* A datagram that does not fit. */
	element(51);
	send_all();
	no_more();
	m.n = DATAGRAM_BYTES + 4;
	memset(m.octet, 0, m.n);
	send_all();
	assert_int_equal(filter_events_next(&ev, &t), -ENOBUFS);
	end(51);
	send_all();
	next_is(51, false, true, 0);
	/* A signal loses nothing. */
	element(52);
	end(52);
	send_all();
	receive_errno = EINTR;
	next_is(52, true, true, 1);
}

static void
elements_beyond_16_mib_need_the_whole_table(void **state)
{
	only_count = true;
	element(60);
	send_all();
	ev.messages.n = MESSAGES_MAX - m.nlh->nlmsg_len;
	end(60);
	send_all();
	assert_int_equal(filter_events_next(&ev, &t), 1);
	assert_true(t.ours && t.elements_only);
	assert_int_equal(t.messages->n, MESSAGES_MAX);
	no_more();
	element(61);
	send_all();
	ev.messages.n = MESSAGES_MAX - m.nlh->nlmsg_len + 1;
	end(61);
	send_all();
	assert_int_equal(filter_events_next(&ev, &t), 1);
	assert_true(t.ours && !t.elements_only);
	/* Without memory for the elements, the whole table must be read, too. */
	only_count = false;
	no_memory = true;
	element(62);
	end(62);
	send_all();
	next_is(62, true, false, 0);
}

/* --- transactions while the tables are read ------------------------------------------- */

static void
changes_of_elements_are_gathered(void **state)
{
	const struct filter_gathered *g = &ev.gathered;
	size_t bytes;

	end(99);
	send_all();
	filter_gather(&ev);
	filter_gather_begin(&ev, 100);
	assert_int_equal(g->from, 100);
	assert_int_equal(g->heard, 100);
	assert_true(g->awaits_from);
	/* 100 is the generation that is read. It changes no table of this reader. */
	put(NFT_MSG_NEWRULE, "other", NFPROTO_INET, 100);
	end(100);
	element(101);
	bytes = MNL_ALIGN(m.nlh->nlmsg_len);
	element(101);
	end(101);
	end(102);
	send_all();
	filter_gather(&ev);
	assert_false(g->awaits_from);
	assert_false(g->spoiled);
	assert_int_equal(g->heard, 102);
	assert_int_equal(g->messages.n, 2 * bytes);
	/* A transaction that was heard before changes nothing. */
	element(101);
	end(101);
	send_all();
	filter_gather(&ev);
	assert_int_equal(g->messages.n, 2 * bytes);
	assert_int_equal(g->heard, 102);
	/* The next read begins without messages. */
	filter_gather_begin(&ev, 102);
	assert_int_equal(g->messages.n, 0);
	assert_true(g->awaits_from); /* the last end that was heard is that of 101 */
	end(102);
	send_all();
	filter_gather(&ev);
	filter_gather_begin(&ev, 102);
	assert_false(g->awaits_from);
}

/*
 * Begin a read of generation 200, and gather the written transactions. Return true if they
 * spoil it.
 */
static bool
spoils(void)
{
	filter_gather_begin(&ev, 200);
	send_all();
	filter_gather(&ev);
	return ev.gathered.spoiled;
}

static void
other_changes_spoil_the_read(void **state)
{
	end(199);
	send_all();
	filter_gather(&ev);
	/*
	 * Transaction 200 itself changes a table: the read may miss a part of its changes.
	 */
	element(200);
	end(200);
	assert_true(spoils());
	end(201);
	put(NFT_MSG_NEWRULE, "t", NFPROTO_INET, 202);
	end(202);
	assert_true(spoils());
	assert_int_equal(ev.gathered.heard, 202);
	/* A rule of another table does not spoil the read. */
	put(NFT_MSG_NEWRULE, "other", NFPROTO_INET, 203);
	end(203);
	assert_false(spoils());
	/* A loss of messages spoils the read. */
	receive_errno = ENOBUFS;
	end(204);
	assert_true(spoils());
	next_is(204, false, true, 0);
	/* A lack of memory for the messages spoils the read, and too many messages, too. */
	element(205);
	send_all();
	no_more();
	no_memory = true;
	end(205);
	assert_true(spoils());
	no_memory = false;
	filter_gather_begin(&ev, 200);
	assert_false(ev.gathered.spoiled);
	only_count = true;
	element(206);
	ev.gathered.messages.n = MESSAGES_MAX - m.nlh->nlmsg_len;
	end(206);
	send_all();
	filter_gather(&ev);
	assert_false(ev.gathered.spoiled);
	element(207);
	ev.gathered.messages.n = MESSAGES_MAX - m.nlh->nlmsg_len + 1;
	end(207);
	send_all();
	filter_gather(&ev);
	assert_true(ev.gathered.spoiled);
	ev.gathered.messages.n = 0;
}

/* --- the wait for transactions -------------------------------------------------------- */

static unsigned int ends_after; /* polls after which the thread must end; 0: never */

static bool
is_ending(void *ctx)
{
	assert_ptr_equal(ctx, &ends_after);
	return ends_after != 0 && n_polls >= ends_after;
}

static int
until(uint32_t generation)
{
	return filter_gather_until(&ev, generation, is_ending, &ends_after);
}

/* At the third poll, send the end of transaction 300. */
static void
end_at_third_poll(void)
{
	if (n_polls != 3)
		return;
	end(300);
	send_all();
}

static void
rule_at_second_poll(void)
{
	if (n_polls != 2)
		return;
	put(NFT_MSG_NEWRULE, "t", NFPROTO_INET, 300);
	end(300);
	send_all();
}

static void
the_wait_ends_with_the_last_transaction(void **state)
{
	ends_after = 0;
	/* No transaction was announced yet: this generation is older than the socket. */
	filter_gather_begin(&ev, 299);
	assert_int_equal(until(299), 0);
	assert_int_equal(n_polls, 0);
	on_poll = end_at_third_poll;
	assert_int_equal(until(300), 0);
	assert_int_equal(n_polls, 3);
	/*
	 * The generation that is read is announced soon, or was announced before the
	 * socket was open. So the wait has a limit.
	 */
	n_polls = 0;
	on_poll = NULL;
	filter_gather_begin(&ev, 301);
	assert_true(ev.gathered.awaits_from);
	assert_int_equal(until(301), 0);
	assert_int_equal(n_polls, AWAIT_MS / 50 + 1);
}

static void
the_wait_has_an_end(void **state)
{
	ends_after = 0;
	filter_gather_begin(&ev, 299);
	assert_int_equal(until(300), -EAGAIN);
	assert_int_equal(n_polls, HEAR_MS / 50 + 1);
	n_polls = 0;
	ends_after = 4;
	assert_int_equal(until(300), -ECANCELED);
	assert_int_equal(n_polls, 4);
	/* A read that is spoiled has to be repeated anyway. */
	n_polls = ends_after = 0;
	on_poll = rule_at_second_poll;
	assert_int_equal(until(301), -EAGAIN);
	assert_int_equal(n_polls, 2);
	n_polls = 0;
	assert_int_equal(until(300), -EAGAIN);
	assert_int_equal(n_polls, 0);
	/* The awaited transaction itself spoils the read. */
	filter_gather_begin(&ev, 300);
	put(NFT_MSG_NEWRULE, "t", NFPROTO_INET, 301);
	end(301);
	send_all();
	assert_int_equal(until(301), -EAGAIN);
	assert_int_equal(n_polls, 0);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)
	static const struct CMUnitTest tests[] = {
		TEST(without_memory_there_is_no_reader),
		TEST(a_transaction_has_the_messages_before_its_end),
		TEST(all_but_elements_needs_the_whole_table),
		TEST(a_transaction_may_be_in_many_datagrams_and_a_datagram_have_many),
		TEST(the_lost_end_of_a_transaction_shows),
		TEST(other_messages_and_strangers_are_ignored),
		TEST(what_is_lost_is_told_and_ends_the_transaction),
		TEST(elements_beyond_16_mib_need_the_whole_table),
		TEST(changes_of_elements_are_gathered),
		TEST(other_changes_spoil_the_read),
		TEST(the_wait_ends_with_the_last_transaction),
		TEST(the_wait_has_an_end),
	};

	return cmocka_run_group_tests_name("filter_events", tests, NULL, NULL);
}
