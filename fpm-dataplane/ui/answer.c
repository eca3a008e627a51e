/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answer a request of any protocol. ui answers from its own data at once, and sends a query
 * to the owner of other data. Runs in ui. Rows arrive a slice at a time. The next slice is
 * requested only when the client has read the last slice, so a slow client holds only the
 * memory of one slice.
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

#include "base/clock.h"
#include "base/filter_status.h"
#include "base/fpm_event.h"
#include "base/log.h"
#include "fib/fib.h"
#include "base/sd_notify.h"

#define VRFS_NAMED     6   /* largest number of VRFs in a sentence */
#define FILTER_WAIT_MS 300 /* the longest time that a client waits for a build to end */

const struct refusal_info refusal_info[N_REFUSAL] = {
	[REFUSED_NONE] = {0, 200},   [REFUSED_INVALID] = {2, 400},
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
answer_from_ui(struct answer *a)
{
	show_rows(a->ui, a->req.show, &a->out);
	a->state = ANSWER_DONE;
}

/* Refuse an unknown VRF, and list the known ones. */
static void
answer_refuse_vrf(struct answer *a)
{
	struct buf said = {0};
	unsigned int n = 0;
	char text[128];

	/* The names that FRR and iproute2 use for the table without a VRF. */
	if (strcmp(a->req.vrf, "default") == 0 || strcmp(a->req.vrf, "main") == 0) {
		answer_refuse(a, REFUSED_MISSING,
			      "table main is no VRF: `fpmctl show routes` shows its routes "
			      "without a VRF");
		return;
	}
	buf_printf(&said, "no VRF '%s' has a FIB", request_echo(a->req.vrf, text));
	for (uint16_t i = 1; i < FIB_VRF_NONE && n <= VRFS_NAMED; i++) {
		const struct fib_vrf *vrf = fib_vrf(a->ui->conf.fib, i);

		if (vrf == NULL)
			continue;
		buf_printf(&said, "%s%s", n == 0 ? "; VRFs with a FIB: " : ", ",
			   n == VRFS_NAMED ? "..." : request_echo(vrf->name, text));
		n++;
	}
	buf_printf(&said, "%s",
		   n > 0 ? " (`fpmctl show vrfs`)"
			 : ", and no other VRF has one: `ip link add NAME type vrf "
			   "table N` in the control namespace creates a VRF");
	buf_put(&said, "", 1);
	answer_refuse(a, REFUSED_MISSING, said.data);
	buf_free(&said);
}

static void
answer_send_query(struct answer *a, enum query_kind kind)
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
	q->of = a->req.of;
	q->repair = a->req.repair;
	q->breaking = a->req.breaking;
	q->family = a->req.family;
	q->prefix = a->req.prefix;
	q->vrf = vrf;
	q->max = UI_SLICE_ROWS;
	a->state = ANSWER_ASKING;
	query_send(a->ui, q, a);
}

/* Return for how long thread filter has been reading and building; 0: it is idle. */
static uint64_t
filter_busy_ms(void)
{
	uint64_t since =
		atomic_load_explicit(&filter_status.busy_since_ms, memory_order_relaxed);
	uint64_t now = monotonic_ms();

	return since == 0 ? 0 : now > since ? now - since : 1;
}

static void
answer_refuse_for_build(struct answer *a, uint64_t ms)
{
	char said[256], until[96] = "no ruleset filters packets (filter.on-error applies)";
	unsigned int generation =
		atomic_load_explicit(&filter_status.generation, memory_order_relaxed);

	if (generation != 0)
		snprintf(until, sizeof(until),
			 "generation %u with %u rules filters the packets", generation,
			 atomic_load_explicit(&filter_status.rules, memory_order_relaxed));
	snprintf(said, sizeof(said),
		 "a ruleset is being read and built for %llu.%llu s; until it is in force, "
		 "%s",
		 (unsigned long long)(ms / 1000), (unsigned long long)(ms % 1000 / 100),
		 until);
	answer_refuse(a, REFUSED_BUSY, said);
}

static void
answer_timeout_start(struct answer *a, double seconds)
{
	ev_timer_set(&a->timeout, seconds, 0);
	ev_timer_start(a->ui->w->loop, &a->timeout);
}

/*
 * Ask the filter thread. It does not answer while it builds a ruleset. If a build takes
 * more than FILTER_WAIT_MS, refuse the request and report the time, so that the client does
 * not wait.
 */
static void
answer_filter(struct answer *a)
{
	uint64_t ms = filter_busy_ms();

	if (ms >= FILTER_WAIT_MS) {
		answer_refuse_for_build(a, ms);
		return;
	}
	answer_send_query(a, QUERY_FILTER);
	if (a->state == ANSWER_ASKING)
		answer_timeout_start(a, FILTER_WAIT_MS / 1000.);
}

static void
answer_refuse_port(struct answer *a)
{
	char said[256], name[128];

	snprintf(said, sizeof(said),
		 "no port or VLAN '%s': `fpmctl show interfaces` lists them",
		 request_echo(a->req.port, name));
	answer_refuse(a, REFUSED_MISSING, said);
}

static void
answer_send_watch(struct answer *a)
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
	bool connected =
		atomic_load_explicit(&fpm_status.connected, memory_order_relaxed) != 0;

	/* If all routes come from the kernel, zebra need not be connected. */
	if (!connected && strcmp(a->ui->conf.routes_from, "kernel") != 0) {
		answer_refuse(a, REFUSED_STATE,
			      "zebra is not connected; it replays when it connects");
		return;
	}
	if (connected)
		worker_send(a->ui->conf.fpm, msg_new(MSG_REPLAY, sizeof(struct msg)));
	worker_send(a->ui->conf.rtnl, msg_new(MSG_REPLAY, sizeof(struct msg)));
}

/*
 * Send a hold to fpm. The client requests it before FRR stops its daemons; or, if zebra is
 * not connected, before zebra connects again.
 */
static void
answer_hold(struct answer *a)
{
	struct msg_hold *mh;

	if (a->req.seconds > 0 &&
	    atomic_load_explicit(&fpm_status.nl_pid, memory_order_relaxed) == 0) {
		answer_refuse(
			a, REFUSED_STATE,
			"nothing to hold: no zebra has sent a message yet, and none is "
			"known from before a restart");
		return;
	}
	mh = msg_new(MSG_QUERY, sizeof(*mh));
	mh->seconds = a->req.seconds;
	mh->q.kind = QUERY_HOLD;
	a->state = ANSWER_ASKING;
	query_send(a->ui, &mh->q, a);
}

/*
 * Request a restart from main. main hands over to a successor. If the memory does not
 * suffice for two processes, main ends with the exit code that requests another start.
 */
static void
answer_restart(struct answer *a)
{
	if (!sd_has_manager()) {
		answer_refuse(a, REFUSED_STATE,
			      "no supervisor would start the daemon again: it runs neither "
			      "under systemd nor under fpm-supervise");
		return;
	}
	log_info("ui: restart requested");
	kill(getpid(), SD_SIGNAL_RESTART);
}

/*
 * Return true if the client runs as root or as the daemon's user, not only in the socket's
 * group.
 */
static bool
answer_client_is_owner(const struct answer *a)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return getsockopt(a->fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
	       (peer.uid == 0 || peer.uid == geteuid());
}

static void
answer_send_manage(struct answer *a)
{
	struct msg_manage *mm;

	/* Drivers of some devices write to any file. */
	if ((a->req.change.device[0] != '\0' || a->req.change.file[0] != '\0') &&
	    !answer_client_is_owner(a)) {
		answer_refuse(a, REFUSED_RIGHTS,
			      "only root may name a device or a file, because the daemon "
			      "opens it as root: use sudo");
		return;
	}
	/* A hook program must be as trusted as the code of the daemon. */
	if ((a->req.change.op == MANAGE_HOOK_LOAD ||
	     a->req.change.op == MANAGE_HOOK_UNLOAD) &&
	    !answer_client_is_owner(a)) {
		answer_refuse(a, REFUSED_RIGHTS,
			      "only root may load or unload a program: use sudo");
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
		answer_send_query(a, QUERY_AUDIT);
		break;
	case SHOW_ROUTES:
		answer_send_query(a, QUERY_ROUTES);
		break;
	case SHOW_NEXTHOPS:
		answer_send_query(a, QUERY_NEXTHOPS);
		break;
	case SHOW_WARNINGS:
		answer_send_query(a, QUERY_WARNINGS);
		break;
	case SHOW_FILTER:
		answer_filter(a);
		break;
	case SHOW_SFLOW:
		answer_send_query(a, QUERY_SFLOW);
		break;
	case SHOW_BFD:
		answer_send_query(a, QUERY_BFD);
		break;
	case SHOW_RULES:
		answer_send_query(a, QUERY_RULES);
		break;
	case SHOW_GROUPS:
		answer_send_query(a, QUERY_GROUPS);
		break;
	case SHOW_LABELS:
		answer_send_query(a, QUERY_LABELS);
		break;
	case SHOW_ENCAPS:
		answer_send_query(a, QUERY_ENCAPS);
		break;
	case SHOW_SIDS:
		answer_send_query(a, QUERY_SIDS);
		break;
	case SHOW_NEIGHBORS:
		answer_send_query(a, QUERY_NEIGHBORS);
		break;
	case SHOW_INTERFACES:
		answer_send_query(a, QUERY_INTERFACES);
		break;
	case SHOW_FIB:
		answer_send_query(a, QUERY_FIB);
		break;
	case SHOW_VRFS:
		answer_send_query(a, QUERY_VRFS);
		break;
	case SHOW_FPM:
	case SHOW_KERNEL:
	case SHOW_MEMORY:
		/*
		 * Show a new summary if rib answers soon, or else the last known summary.
		 */
		a->state = ANSWER_WAITING;
		answer_timeout_start(a, UI_SUMMARY_WAIT_S);
		query_summary(a->ui);
		break;
	default:
		answer_from_ui(a);
	}
}

/* Replace an alternative name of an interface, or of a VRF, by its primary name. */
static void
answer_own_name(const struct answer *a, char *name, size_t size)
{
	const struct fib *fib = a->ui->conf.fib;

	if (name[0] != '\0' && fib_iface_named(fib, name) == 0 &&
	    fib_vrf_named(fib, name) == 0)
		ifname_own(a->ui->conf.netns, name, size);
}

/*
 * Replace an alternative name of a TAP, or the primary name of a TAP that was renamed, by
 * the name of its port.
 */
static void
answer_port_name(const struct answer *a, char *name, size_t size)
{
	const struct ui_conf *conf = &a->ui->conf;

	if (name[0] == '\0')
		return;
	for (unsigned int i = 0; i < conf->n_port; i++)
		if (port_is_there(&conf->port[i]) && strcmp(conf->port[i].name, name) == 0)
			return;
	answer_own_name(a, name, size);
	for (unsigned int i = 0; i < conf->n_port; i++) {
		const struct fib_iface *tap = fib_iface(conf->fib, conf->port[i].ifidx);

		if (port_is_there(&conf->port[i]) && tap != NULL &&
		    strcmp(tap->name, name) == 0) {
			snprintf(name, size, "%s", conf->port[i].name);
			return;
		}
	}
}

/*
 * Replace alternative names of interfaces in the request. For names that the FIB does not
 * have, ask the kernel. The kernel answers within send(), so ui waits while another process
 * holds the kernel's lock of interfaces.
 */
static void
answer_own_names(struct answer *a)
{
	struct request *req = &a->req;
	struct manage_want *change = &req->change;

	answer_port_name(a, req->port, sizeof(req->port));
	if (req->show == SHOW_PORTS)
		answer_port_name(a, req->name, sizeof(req->name));
	if (req->show == SHOW_INTERFACES || req->show == SHOW_VRFS ||
	    req->show == SHOW_HOOKS)
		answer_own_name(a, req->name, sizeof(req->name));
	for (unsigned int k = 0; k < N_FILTER_WORD; k++)
		if (strcmp(filter_word[k].key, "dev") == 0)
			answer_own_name(a, req->filter.value[k],
					sizeof(req->filter.value[k]));
	if (change->op == MANAGE_PORT_SET || change->op == MANAGE_PORT_DEL)
		answer_port_name(a, change->tap, sizeof(change->tap));
	answer_own_name(a, change->hook.dev, sizeof(change->hook.dev));
}

void
answer_begin(struct answer *a, const json_t *request)
{
	char why[UI_WHY_MAX];
	int rc = request_parse(request, &a->req, why, sizeof(why));

	a->out.n = 0;
	a->out.key = NULL;
	a->out.filter = &a->req.filter;
	a->refused = REFUSED_NONE;
	a->state = ANSWER_DONE;
	if (rc < 0)
		answer_refuse(a, rc == -ENOENT ? REFUSED_MISSING : REFUSED_INVALID, why);
	else
		answer_own_names(a);
	if (a->refused != REFUSED_NONE)
		return;
	if (a->req.replay)
		answer_replay(a);
	else if (a->req.hold)
		answer_hold(a);
	else if (a->req.restart)
		answer_restart(a);
	else if (a->req.change.op != MANAGE_NOTHING)
		answer_send_manage(a);
	else if (a->req.breaking != BREAK_NOTHING)
		answer_send_query(a, QUERY_BREAK);
	else if (a->req.want.ask != WATCH_ASK_NONE)
		answer_send_watch(a);
	else
		answer_show(a);
}

void
answer_more(struct answer *a)
{
	struct msg_query *q = a->query;
	bool filter = q->kind == QUERY_FILTER;

	a->query = NULL;
	a->state = ANSWER_ASKING;
	query_send(a->ui, q, a);
	if (filter && a->state == ANSWER_ASKING)
		answer_timeout_start(a, FILTER_WAIT_MS / 1000.);
}

bool
answer_client_left(const struct answer *a)
{
	struct pollfd p = {.fd = a->fd};

	return poll(&p, 1, 0) == 1 && (p.revents & (POLLHUP | POLLERR)) != 0;
}

/* Set the result after the last rows. */
static void
answer_set_result(struct answer *a, struct msg_query *q)
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
	ev_timer_stop(a->ui->w->loop, &a->timeout);
	json_array_foreach ((json_t *)(uintptr_t)rows, i, row)
		rows_put(&a->out, json_incref(row));
	if (q->kind == QUERY_MANAGE && a->req.change.op == MANAGE_POLICER &&
	    !caa_container_of(q, struct msg_manage, q)->is_barred)
		rows_put(&a->out, show_class(a->req.change.class));
	if (q->done) {
		answer_set_result(a, q);
	} else {
		a->query = q;
		a->state = ANSWER_SLICE;
	}
	a->on_progress(a);
}

static void
answer_resume(struct answer *a)
{
	ev_timer_stop(a->ui->w->loop, &a->timeout);
	answer_from_ui(a);
	a->on_progress(a);
}

void
answers_summary(struct ui *ui)
{
	struct answer *a, *next;

	cds_list_for_each_entry_safe (a, next, &ui->answers, list)
		if (a->state == ANSWER_WAITING)
			answer_resume(a);
}

/* Thread filter has not replied. If it builds, do not wait: the reply will be dropped. */
static void
answer_filter_late(struct answer *a)
{
	uint64_t ms = filter_busy_ms();

	if (ms == 0) {
		answer_timeout_start(a, FILTER_WAIT_MS / 1000.);
		return;
	}
	a->flight->answer = NULL;
	a->flight = NULL;
	answer_refuse_for_build(a, ms);
	a->on_progress(a);
}

static void
answer_on_timeout(struct ev_loop *loop, ev_timer *t, int revents)
{
	struct answer *a = t->data;

	if (a->state == ANSWER_ASKING)
		answer_filter_late(a);
	else
		answer_resume(a);
}

void
answer_init(struct answer *a, struct ui *ui, int fd, void (*on_progress)(struct answer *a))
{
	*a = (struct answer){.ui = ui, .fd = fd, .on_progress = on_progress};
	ev_timer_init(&a->timeout, answer_on_timeout, 0, 0);
	a->timeout.data = a;
	cds_list_add(&a->list, &ui->answers);
}

void
answer_drop(struct answer *a)
{
	ev_timer_stop(a->ui->w->loop, &a->timeout);
	if (a->flight != NULL)
		a->flight->answer = NULL; /* the reply is dropped */
	if (a->query != NULL)
		query_drop(a->ui, a->query);
	cds_list_del(&a->list);
	buf_free(&a->out.buf);
}
