/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A request answered, whoever asked it and however it came: what is known here at once, the
 * rest by questions to the thread that knows. Runs in ui. Rows come a slice at a time, and the
 * next slice is asked for only when the asker has taken the last, so that one that reads slowly
 * or not at all holds one slice of memory and nothing else.
 */
#include "ui/internal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fpm_event.h"
#include "base/log.h"
#include "fib/fib.h"
#include "base/sd_notify.h"

#define VRFS_NAMED 6 /* in a sentence */

const struct refusal_info refusal_info[N_REFUSAL] = {
	[REFUSED_NOT] = {0, 200},    [REFUSED_WORDS] = {2, 400},
	[REFUSED_RIGHTS] = {2, 403}, [REFUSED_MISSING] = {2, 404},
	[REFUSED_CHANGE] = {2, 409}, [REFUSED_STATE] = {3, 409},
	[REFUSED_BUSY] = {1, 503},
};

static void
answer_refuse(struct answer *a, enum refusal why, const char *sentence)
{
	snprintf(a->error, sizeof(a->error), "%s", sentence);
	a->refused = why;
	a->state = ANSWER_DONE;
}

static void
answer_here(struct answer *a)
{
	show_rows(a->ui, a->req.show, &a->out);
	a->state = ANSWER_DONE;
}

/* Which VRFs there are, for whom named another. */
static void
answer_refuse_vrf(struct answer *a)
{
	struct buf said = {0};
	unsigned int n = 0;
	char text[128];

	/* As FRR and iproute2 call what is none. */
	if (strcmp(a->req.vrf, "default") == 0 || strcmp(a->req.vrf, "main") == 0) {
		answer_refuse(a, REFUSED_MISSING,
			      "table main is no VRF: its routes are those without one in "
			      "`fpmctl show routes`");
		return;
	}
	buf_printf(&said, "no VRF '%s' has a FIB", request_echo(a->req.vrf, text));
	for (uint16_t i = 1; i < FIB_VRF_NONE && n <= VRFS_NAMED; i++) {
		const struct fib_vrf *vrf = fib_vrf(a->ui->conf.fib, i);

		if (vrf == NULL)
			continue;
		buf_printf(&said, "%s%s", n == 0 ? "; those that have one: " : ", ",
			   n == VRFS_NAMED ? "..." : request_echo(vrf->name, text));
		n++;
	}
	buf_printf(&said, "%s",
		   n > 0 ? " (`fpmctl show vrfs`)"
			 : ", and none else has: `ip link add NAME type vrf table N` in "
			   "the control namespace makes one");
	buf_put(&said, "", 1);
	answer_refuse(a, REFUSED_MISSING, said.data);
	buf_free(&said);
}

static void
answer_ask(struct answer *a, enum query_kind kind)
{
	bool in_vrf = a->req.vrf[0] != '\0';
	uint16_t vrf = in_vrf ? fib_vrf_named(a->ui->conf.fib, a->req.vrf) : 0;
	struct msg_query *q;

	if (in_vrf && vrf == 0) {
		answer_refuse_vrf(a);
		return;
	}
	q = msg_new(MSG_QUERY, sizeof(*q));
	q->kind = kind;
	q->has_prefix = a->req.has_prefix;
	q->longest = a->req.longest;
	q->all_tables = a->req.all_tables;
	q->repair = a->req.repair;
	q->breaking = a->req.breaking;
	q->family = a->req.family;
	q->prefix = a->req.prefix;
	q->vrf = vrf;
	q->max = UI_SLICE_ROWS;
	a->state = ANSWER_ASKING;
	query_send(a->ui, q, a);
}

static void
answer_refuse_port(struct answer *a)
{
	char said[256], name[128];

	snprintf(said, sizeof(said),
		 "no such port '%s', nor VLAN: `fpmctl show interfaces` lists them",
		 request_echo(a->req.port, name));
	answer_refuse(a, REFUSED_MISSING, said);
}

static void
answer_ask_trace(struct answer *a)
{
	struct msg_watch *mw;
	const struct ui_conf *conf = &a->ui->conf;
	uint16_t ifidx = 0;

	for (unsigned int i = 0; i < conf->n_port; i++)
		if (port_is_there(&conf->port[i]) &&
		    strcmp(conf->port[i].name, a->req.port) == 0)
			ifidx = conf->port[i].ifidx;
	for (unsigned int i = PORT_MAX; i < IFIDX_MAX && ifidx == 0; i++) {
		const struct fib_iface *vlan = fib_iface(conf->fib, i);

		if (vlan != NULL && vlan->ifindex != 0 &&
		    strcmp(vlan->name, a->req.port) == 0)
			ifidx = (uint16_t)i;
	}
	if (a->req.port[0] != '\0' && ifidx == 0) {
		answer_refuse_port(a);
		return;
	}
	mw = msg_new(MSG_QUERY, sizeof(*mw));
	mw->want = a->req.want;
	mw->want.ifidx = mw->want.filter.ifidx = ifidx;
	mw->q.kind = QUERY_WATCH;
	a->state = ANSWER_ASKING;
	query_send(a->ui, &mw->q, a);
}

static void
answer_replay(struct answer *a)
{
	if (atomic_load_explicit(&fpm_status.connected, memory_order_relaxed) == 0)
		answer_refuse(a, REFUSED_STATE,
			      "zebra is not connected; it will replay when it comes");
	else
		worker_send(a->ui->conf.fpm, msg_new(MSG_REPLAY, sizeof(struct msg)));
}

/* Before FRR ends its daemons; when zebra is away, before it comes back. */
static void
answer_hold(struct answer *a)
{
	struct msg_hold *mh;

	if (a->req.seconds > 0 &&
	    atomic_load_explicit(&fpm_status.nl_pid, memory_order_relaxed) == 0) {
		answer_refuse(
			a, REFUSED_STATE,
			"nothing to hold: no zebra has said anything yet, nor is one known "
			"from before a restart");
		return;
	}
	mh = msg_new(MSG_QUERY, sizeof(*mh));
	mh->seconds = a->req.seconds;
	mh->q.kind = QUERY_HOLD;
	a->state = ANSWER_ASKING;
	query_send(a->ui, &mh->q, a);
}

/* main ends as for SIGTERM, with the exit code that asks for another start. */
static void
answer_restart(struct answer *a)
{
	if (!sd_has_manager()) {
		answer_refuse(
			a, REFUSED_STATE,
			"nobody would start it again: it runs neither under systemd nor "
			"under fpm-supervise");
		return;
	}
	log_info("ui: restart asked for");
	kill(getpid(), SD_SIGNAL_RESTART);
}

/* Is the other end root, or who we are? Not only of the socket's group. */
static bool
asker_is_owner(const struct answer *a)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return getsockopt(a->fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
	       (peer.uid == 0 || peer.uid == geteuid());
}

static void
answer_ask_manage(struct answer *a)
{
	struct msg_manage *mm;

	/* The drivers of some devices write to any file. */
	if ((a->req.change.device[0] != '\0' || a->req.change.file[0] != '\0') &&
	    !asker_is_owner(a)) {
		answer_refuse(
			a, REFUSED_RIGHTS,
			"only root may name a device or a file, for the daemon opens it as "
			"root: ask as root (sudo)");
		return;
	}
	mm = msg_new(MSG_QUERY, sizeof(*mm));
	mm->want = a->req.change;
	mm->q.kind = QUERY_MANAGE;
	a->state = ANSWER_ASKING;
	query_send(a->ui, &mm->q, a);
}

static void
answer_show(struct answer *a)
{
	if (a->req.name[0] != '\0') {
		a->out.key = show_info[a->req.show].key;
		a->out.value = a->req.name;
	}
	switch (a->req.show) {
	case SHOW_AUDIT:
		answer_ask(a, QUERY_AUDIT);
		break;
	case SHOW_ROUTES:
		answer_ask(a, QUERY_ROUTES);
		break;
	case SHOW_NEXTHOPS:
		answer_ask(a, QUERY_NEXTHOPS);
		break;
	case SHOW_GROUPS:
		answer_ask(a, QUERY_GROUPS);
		break;
	case SHOW_NEIGHBORS:
		answer_ask(a, QUERY_NEIGHBORS);
		break;
	case SHOW_INTERFACES:
		answer_ask(a, QUERY_INTERFACES);
		break;
	case SHOW_FIB:
		answer_ask(a, QUERY_FIB);
		break;
	case SHOW_VRFS:
		answer_ask(a, QUERY_VRFS);
		break;
	case SHOW_FPM:
	case SHOW_MEMORY:
		/* Fresh if rib is quick; behind a long queue the last one known will do. */
		a->state = ANSWER_WAITING;
		ev_timer_set(&a->patience, UI_SUMMARY_WAIT_S, 0);
		ev_timer_start(a->ui->w->loop, &a->patience);
		query_summary(a->ui);
		break;
	default:
		answer_here(a);
	}
}

void
answer_begin(struct answer *a, const json_t *request)
{
	char why[UI_WHY_MAX];
	int rc = request_parse(request, &a->req, why, sizeof(why));

	a->out.n = 0;
	a->out.key = NULL;
	a->out.choose = &a->req.choose;
	a->refused = REFUSED_NOT;
	a->state = ANSWER_DONE;
	if (rc < 0)
		answer_refuse(a, rc == -ENOENT ? REFUSED_MISSING : REFUSED_WORDS, why);
	else if (a->req.replay)
		answer_replay(a);
	else if (a->req.hold)
		answer_hold(a);
	else if (a->req.restart)
		answer_restart(a);
	else if (a->req.change.op != MANAGE_NOTHING)
		answer_ask_manage(a);
	else if (a->req.breaking != BREAK_NOTHING)
		answer_ask(a, QUERY_BREAK);
	else if (a->req.want.ask != WATCH_ASK_NONE)
		answer_ask_trace(a);
	else
		answer_show(a);
}

void
answer_more(struct answer *a)
{
	struct msg_query *q = a->query;

	a->query = NULL;
	a->state = ANSWER_ASKING;
	query_send(a->ui, q, a);
}

bool
answer_is_unheard(const struct answer *a)
{
	struct pollfd p = {.fd = a->fd};

	return poll(&p, 1, 0) == 1 && (p.revents & (POLLHUP | POLLERR)) != 0;
}

/* What came of it, now that the last rows are there. */
static void
answer_conclude(struct answer *a, struct msg_query *q)
{
	const char *error;

	a->state = ANSWER_DONE;
	if (q->kind == QUERY_WATCH) {
		error = caa_container_of(q, struct msg_watch, q)->error;
		if (error != NULL)
			answer_refuse(a, REFUSED_BUSY, error);
	} else if (q->kind == QUERY_MANAGE) {
		const struct msg_manage *mm = caa_container_of(q, struct msg_manage, q);

		if (mm->error[0] != '\0')
			answer_refuse(a,
				      mm->is_missing  ? REFUSED_MISSING
				      : mm->is_barred ? REFUSED_STATE
						      : REFUSED_CHANGE,
				      mm->error);
	}
	msg_free(&q->m);
}

void
answer_reply(struct answer *a, struct msg_query *q, const json_t *rows)
{
	size_t i;
	json_t *row;

	a->flight = NULL;
	json_array_foreach ((json_t *)(uintptr_t)rows, i, row)
		rows_put(&a->out, json_incref(row));
	if (q->kind == QUERY_MANAGE && a->req.change.op == MANAGE_POLICER &&
	    !caa_container_of(q, struct msg_manage, q)->is_barred)
		rows_put(&a->out, show_class(a->req.change.class));
	if (q->done) {
		answer_conclude(a, q);
	} else {
		a->query = q;
		a->state = ANSWER_SLICE;
	}
	a->moved(a);
}

static void
answer_go_on(struct answer *a)
{
	ev_timer_stop(a->ui->w->loop, &a->patience);
	answer_here(a);
	a->moved(a);
}

void
answers_summary(struct ui *ui)
{
	struct answer *a, *next;

	cds_list_for_each_entry_safe (a, next, &ui->answers, list)
		if (a->state == ANSWER_WAITING)
			answer_go_on(a);
}

static void
on_patience(struct ev_loop *loop, ev_timer *t, int revents)
{
	answer_go_on(t->data);
}

void
answer_init(struct answer *a, struct ui *ui, int fd, void (*moved)(struct answer *a))
{
	*a = (struct answer){.ui = ui, .fd = fd, .moved = moved};
	ev_timer_init(&a->patience, on_patience, 0, 0);
	a->patience.data = a;
	cds_list_add(&a->list, &ui->answers);
}

void
answer_drop(struct answer *a)
{
	ev_timer_stop(a->ui->w->loop, &a->patience);
	if (a->flight != NULL)
		a->flight->answer = NULL; /* the reply will find nobody */
	if (a->query != NULL)
		query_drop(a->ui, a->query);
	cds_list_del(&a->list);
	buf_free(&a->out.buf);
}
