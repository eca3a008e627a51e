/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The filter thread: decide when to read the tables and which ruleset is in force. [filter]
 *
 * The kernel announces each transaction of nf_tables. If a transaction changes only
 * elements of one set, the thread changes the set in place. After any other transaction
 * about a table it reads the tables EVENT_MS later, so that one read serves a burst of
 * transactions. The thread is RCU-offline during the read. The first read is in init,
 * before a forwarder runs.
 */
#include "filter/filter.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <ev.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <urcu/urcu-qsbr.h>

#include "base/clock.h"
#include "base/filter_status.h"
#include "base/filter_tables.h"
#include "base/log.h"
#include "base/msg.h"
#include "base/tsan.h"
#include "fib/fib.h"
#include "filter/rows.h"
#include "filter/thread.h"
#include "ruleset/acl.h"
#include "tap-bridge/netns.h"

#define EVENT_MS     20u
#define RETRY_MS     200u       /* after a read that failed */
#define READ_MAX_MS  60000u     /* more than the largest ruleset needs */
#define AGAIN_MS     5000u      /* limit for repeated reads, if the tables change often */
#define LOOK_MS      50u        /* period of the check whether the daemon ends */
#define EVENTS_MAX   64u        /* transactions in a round: each may copy a long set */
#define EVENTS_BYTES (32 << 20) /* buffer; after a lost event the tables are read */

#define STATUS(field, value) \
	atomic_store_explicit(&filter_status.field, value, memory_order_relaxed)

/* --- the ruleset in force ----------------------------------------------------------- */

static void
reclaim_later(void *ctx, void (*fn)(void *owner, void *memory), void *memory)
{
	worker_defer(ctx, fn, memory);
}

/* Publish a ruleset; NULL: no filter. The old ruleset is freed after a grace period. */
static void
ruleset_publish(struct filter *f, struct ruleset *r)
{
	struct ruleset *old =
		atomic_load_explicit(&f->conf.fib->filter, memory_order_relaxed);

	/* Release: a forwarder that reads the pointer sees the whole ruleset. */
	atomic_store_explicit(&f->conf.fib->filter, r, memory_order_release);
	if (old != NULL)
		ruleset_free_later(old, &f->reclaim);
	f->since_ms = monotonic_ms();
	STATUS(generation, r == NULL ? 0 : r->generation);
	STATUS(rules, r == NULL ? 0 : r->n_rule);
}

static struct ruleset *
in_force(const struct filter *f)
{
	return atomic_load_explicit(&f->conf.fib->filter, memory_order_relaxed);
}

/* Publish the state without a usable ruleset: all packets pass, or all are dropped. */
static void
be_absent(struct filter *f)
{
	struct ruleset *r = NULL;

	if (!f->conf.pass_on_error) {
		r = calloc(1, sizeof(*r));
		if (r == NULL)
			abort();
		r->absent = true;
	}
	/* The kernel may still have the other tables. Their rules keep their counters. */
	if (f->kept == NULL)
		f->kept = kept_copy(in_force(f));
	ruleset_publish(f, r);
	f->state = FILTER_ABSENT;
}

/* Note why the present table is not in force. `gone`: the kernel has no such table. */
static void
ruleset_refuse(struct filter *f, const char *why, bool gone)
{
	bool known = strcmp(f->why, why) == 0;

	STATUS(in_force, false);
	if (!known)
		atomic_fetch_add_explicit(&filter_status.refusals, 1, memory_order_relaxed);
	snprintf(f->why, sizeof(f->why), "%s", why);
	if (!gone && (f->state == FILTER_IN_FORCE || f->state == FILTER_OLD))
		f->state = FILTER_OLD;
	else if (f->state != FILTER_ABSENT)
		be_absent(f);
	if (!known)
		log_warn("filter: ruleset refused table=\"%s\" in_force=%s reason=\"%s\"",
			 f->conf.table,
			 f->state == FILTER_OLD  ? "the-previous-ruleset"
			 : f->conf.pass_on_error ? "none-all-pass"
						 : "none-all-dropped",
			 why);
}

static struct filter_build_conf
build_conf(const struct filter *f, unsigned int table)
{
	return (struct filter_build_conf){.table = &f->table[table],
					  .old = f->kept != NULL ? f->kept : in_force(f),
					  .n_thread = f->conf.n_thread,
					  .now = f->conf.ticks(),
					  .ticks_s = f->conf.ticks_s(),
					  .reclaim = &f->reclaim};
}

/* Build the ruleset of all tables. Returns NULL, and the reason in `why`. */
static struct ruleset *
tables_build(struct filter *f, const struct filter_dump *dump, char why[FILTER_WHY])
{
	struct ruleset *part[FILTER_TABLES_MAX];
	unsigned int n = 0;

	for (unsigned int i = 0; i < f->n_table; i++) {
		struct filter_build_conf conf = build_conf(f, i);

		if (dump[i].missing)
			continue;
		part[n] = filter_build(&dump[i], &conf, why);
		if (part[n] == NULL) {
			while (n > 0)
				ruleset_free_later(part[--n], &f->reclaim);
			return NULL;
		}
		n++;
	}
	return filter_merge(part, n);
}

/* Make the changes of elements that arrived while the tables were read. */
static int
gathered_make(const struct filter *f, struct ruleset *r)
{
	struct filter_build_conf conf = build_conf(f, 0);

	return filter_change(r, f->table, f->n_table, &f->events.gathered.messages, &conf,
			     false);
}

/*
 * Build the ruleset of the tables, and publish it if the build succeeds. Returns 0;
 * -EAGAIN: the tables changed while they were read and must be read again.
 */
static int
ruleset_renew(struct filter *f, const struct filter_dump *dump)
{
	uint64_t begin_ms = monotonic_ms();
	char why[FILTER_WHY];
	unsigned int n_walked;
	unsigned int n_missing = 0;
	struct ruleset *r = tables_build(f, dump, why);

	for (unsigned int i = 0; i < f->n_table; i++)
		n_missing += dump[i].missing;
	f->seen = dump->generation;
	if (r == NULL) {
		ruleset_refuse(f, why, false);
		return 0;
	}
	if (gathered_make(f, r) < 0) {
		ruleset_free_later(r, &f->reclaim);
		return -EAGAIN;
	}
	n_walked = ruleset_acl_build(r);
	if (n_walked > 0)
		log_warn("filter: classifier not built classifiers=%u effect=slow",
			 n_walked);
	f->state = FILTER_IN_FORCE;
	STATUS(in_force, true);
	f->why[0] = '\0';
	packets_serve(&f->packets, f->w->loop, r, f->conf.n_thread);
	ruleset_publish(f, r);
	if (f->kept != NULL)
		ruleset_free_later(f->kept, &f->reclaim);
	f->kept = NULL;
	log_info("filter: ruleset in force table=\"%s\" missing=%u generation=%u chains=%u "
		 "rules=%u build_ms=%llu",
		 f->conf.table, n_missing, r->generation, r->n_chain, r->n_rule,
		 (unsigned long long)(monotonic_ms() - begin_ms));
	return 0;
}

/* --- reading ------------------------------------------------------------------------ */

static bool
is_ending(void *ctx)
{
	const struct filter *f = ctx;

	return worker_is_ending(f->w);
}

static void
read_later(struct filter *f, unsigned int ms)
{
	struct ev_loop *loop = f->w->loop;

	ev_timer_stop(loop, &f->due);
	ev_now_update(loop);
	ev_timer_set(&f->due, ms / 1000., 0.);
	ev_timer_start(loop, &f->due);
}

static const char *
error_text(int rc)
{
	if (rc == -ENOENT)
		return "the control namespace has no such table";
	if (rc == -EAGAIN)
		return "the tables change faster than they can be read";
	if (rc == -EPROTONOSUPPORT || rc == -EINVAL || rc == -EOPNOTSUPP)
		return "the kernel has no nf_tables";
	return strerror(-rc);
}

/* Open a socket of nf_tables in the control namespace. Returns it or -errno. */
static int
socket_open(const char *netns, bool events)
{
	struct sockaddr_nl any = {.nl_family = AF_NETLINK};
	struct timeval wait = {.tv_usec = LOOK_MS * 1000};
	int group = NFNLGRP_NFTABLES, bytes = EVENTS_BYTES, rc = 0;
	int fd = netns_socket(netns, AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER);

	if (fd < 0)
		return fd;
	if (bind(fd, (struct sockaddr *)&any, sizeof(any)) < 0)
		rc = -errno;
	if (events && setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) < 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	if (!events)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	else if (rc == 0 && setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group,
				       sizeof(group)) < 0)
		rc = -errno;
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

static void filter_on_event(struct ev_loop *loop, ev_io *io, int revents);

/*
 * Open the sockets that are not open. Open the socket for events first, so that no change
 * is missed. Returns 0 or -errno.
 */
static int
sockets_open(struct filter *f)
{
	int rc;

	if (f->events.fd < 0) {
		f->events.fd = socket_open(f->conf.netns, true);
		if (f->events.fd < 0)
			return f->events.fd;
		rc = filter_events_init(&f->events, f->events.fd, f->table, f->n_table);
		if (rc < 0)
			return rc;
		ev_io_init(&f->events_io, filter_on_event, f->events.fd, EV_READ);
		f->events_io.data = f;
		ev_io_start(f->w->loop, &f->events_io);
	}
	if (f->ask < 0)
		f->ask = socket_open(f->conf.netns, false);
	return f->ask < 0 ? f->ask : 0;
}

/*
 * Read the tables and build their ruleset. Repeat this if elements changed meanwhile in a
 * set that does not change in place.
 */
static int
ruleset_read_and_build(struct filter *f, struct filter_dump *dump)
{
	const uint32_t *known = f->state == FILTER_IN_FORCE && !f->again ? &f->seen : NULL;
	uint64_t begin = monotonic_ms();
	int rc;

	f->again = false;
	do {
		rc = filter_dump_read(f->ask, &f->events, known, dump, is_ending, f);
		if (rc < 0)
			return rc;
		rc = ruleset_renew(f, dump);
		known = NULL;
	} while (rc == -EAGAIN && monotonic_ms() - begin < AGAIN_MS);
	return rc;
}

/*
 * Read the tables and publish their ruleset. If the first table does not exist, there is no
 * ruleset. Other errors may be temporary, so the thread tries again.
 */
static void
table_read(struct filter *f)
{
	struct filter_dump dump[FILTER_TABLES_MAX] = {0};
	int rc = sockets_open(f);

	if (rc == 0)
		rc = ruleset_read_and_build(f, dump);
	if (rc < 0 && rc != -ECANCELED && rc != -EALREADY) {
		ruleset_refuse(f, error_text(rc), rc == -ENOENT);
		f->again = true;
		if (rc != -ENOENT)
			read_later(f, RETRY_MS);
	}
	for (unsigned int i = 0; i < f->n_table; i++)
		free(dump[i].octet);
}

static void
table_read_offline(struct filter *f)
{
	GRACE_QUIESCENT();
	urcu_qsbr_thread_offline();
	worker_suspend_watchdog(READ_MAX_MS);
	STATUS(busy_since_ms, monotonic_ms());
	table_read(f);
	STATUS(busy_since_ms, 0);
	worker_suspend_watchdog(0);
	urcu_qsbr_thread_online();
}

static void
filter_on_due(struct ev_loop *loop, ev_timer *timer, int revents)
{
	struct filter *f = timer->data;

	ev_timer_stop(loop, timer);
	table_read_offline(f);
}

/* Note that the present ruleset is also valid for a later generation. */
static void
generation_move(struct filter *f, uint32_t generation)
{
	f->seen = generation;
	if (f->state != FILTER_IN_FORCE)
		return;
	in_force(f)->generation = generation;
	STATUS(generation, generation);
}

/* Take a transaction. Returns false if the table has to be read. */
static bool
transaction_take(struct filter *f, const struct filter_transaction *t)
{
	uint32_t next =
		f->seen == UINT32_MAX ? 1 : f->seen + 1; /* the kernel leaves out 0 */
	struct filter_build_conf conf;

	/* The read may contain a part of a transaction that was announced only later. */
	if (t->generation == f->seen && t->ours && f->events.gathered.awaits_from) {
		f->again = true;
		return false;
	}
	/*
	 * If the last read failed or found no table, do not compare with `seen`: the
	 * generations begin again at 1 when the module nf_tables is loaded again.
	 */
	if (t->ours && f->again)
		return false;
	if (!filter_generation_after(t->generation, f->seen))
		return true; /* the tables were read after this change */
	if (t->generation != next)
		return false;
	if (t->ours) {
		if (!t->elements_only || f->state != FILTER_IN_FORCE)
			return false;
		conf = build_conf(f, 0);
		if (filter_change(in_force(f), f->table, f->n_table, t->messages, &conf,
				  true) < 0)
			return false;
	}
	generation_move(f, t->generation);
	return true;
}

static void
filter_on_event(struct ev_loop *loop, ev_io *io, int revents)
{
	struct filter *f = io->data;
	struct filter_transaction t;
	int rc;

	for (unsigned int i = 0; i < EVENTS_MAX || f->events.left > 0; i++) {
		rc = filter_events_next(&f->events, &t);
		/* The lost event may announce the generation that was read. */
		f->again |= rc < 0 && f->events.gathered.awaits_from;
		if (rc != 0 && !ev_is_active(&f->due) &&
		    (rc < 0 || !transaction_take(f, &t)))
			read_later(f, EVENT_MS);
		if (rc <= 0)
			return;
	}
}

/* --- the thread --------------------------------------------------------------------- */

/*
 * Parse the list of "FAMILY NAME", which the configuration has checked. If there are
 * several tables, the table is put before the names of its chains, because two tables may
 * have chains of the same name.
 */
static void
tables_parse(struct filter *f)
{
	const char *list = f->conf.table;
	char text[FILTER_TABLE_TEXT], family[8];

	while (f->n_table < FILTER_TABLES_MAX &&
	       (list = filter_tables_next(list, text)) != NULL) {
		struct filter_table *t = &f->table[f->n_table];

		if (sscanf(text, "%7s %255s", family, t->name) != 2)
			return;
		t->family = strcmp(family, "inet") == 0  ? NFPROTO_INET
			    : strcmp(family, "ip6") == 0 ? NFPROTO_IPV6
							 : NFPROTO_IPV4;
		snprintf(f->prefix[f->n_table++], sizeof(f->prefix[0]), "%s ", text);
	}
	for (unsigned int i = 0; i < f->n_table; i++) {
		f->table[i].prefix = f->n_table > 1 ? f->prefix[i] : "";
		f->table[i].number = (uint8_t)i;
	}
}

static int
filter_init(struct worker *w)
{
	struct filter *f = w->ctx;

	ev_init(&f->due, filter_on_due);
	f->due.data = f;
	if (f->conf.table[0] == '\0')
		return 0;
	tables_parse(f);
	STATUS(configured, true);
	table_read_offline(f);
	return 0;
}

static void
filter_on_msg(struct worker *w, struct msg *m)
{
	struct filter *f = w->ctx;
	struct msg_query *q;

	switch (m->type) {
	case MSG_RECLAIM:
		worker_reclaim(w, m);
		return;
	case MSG_QUERY:
		q = caa_container_of(m, struct msg_query, m);
		filter_rows(f, q);
		q->m.type = MSG_REPLY;
		worker_send(q->from, &q->m);
		return;
	default:
		assert(!"message not for filter");
		msg_free(m);
	}
}

static void
filter_fini(struct worker *w)
{
	struct filter *f = w->ctx;

	ev_timer_stop(w->loop, &f->due);
	packets_stop(&f->packets);
	if (f->events.fd >= 0) {
		ev_io_stop(w->loop, &f->events_io);
		close(f->events.fd);
	}
	filter_events_fini(&f->events);
	if (f->ask >= 0)
		close(f->ask);
	f->events.fd = f->ask = -1;
}

static const struct worker_ops filter_ops = {
	.name = "filter",
	.role = ROLE_FILTER,
	.init = filter_init,
	.on_msg = filter_on_msg,
	.fini = filter_fini,
};

int
filter_setup(struct worker *w, const struct filter_conf *conf)
{
	struct filter *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return -ENOMEM;
	f->w = w;
	f->conf = *conf;
	f->events.fd = f->ask = -1;
	f->reclaim = (struct ruleset_reclaim){.defer = reclaim_later, .ctx = w};
	worker_init(w, &filter_ops, f);
	return 0;
}

void
filter_teardown(struct worker *w)
{
	struct filter *f = w->ctx;

	if (f == NULL)
		return;
	ruleset_free(atomic_load_explicit(&f->conf.fib->filter, memory_order_relaxed));
	atomic_store_explicit(&f->conf.fib->filter, NULL, memory_order_relaxed);
	ruleset_free(f->kept);
	packets_free(&f->packets);
	free(f);
	w->ctx = NULL;
}
