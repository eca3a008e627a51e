/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The warn thread: decide when to scan. [warn]
 *
 * An event of the kernel about devices, traffic control, rules, nf_tables or IPsec leads to
 * a scan. The kernel has no events for sysctls, the old iptables and some filters, so a
 * scan also runs every POLL_MS. The pause after a scan is a multiple of the scan's CPU
 * time, so scans take at most a few percent of one CPU, however many devices and events
 * there are.
 *
 * A scan begins with four queries. Three go to rib: for the rules, because only rib knows
 * which rules it obeys, for the interfaces through which the kernel forwards, and for the
 * links whose routes Linux uses differently. One goes to neigh, for the tunnels that
 * forwarders do not serve. After the answers the thread enters the control namespace and
 * reads everything else. It is RCU-offline during the read.
 */
#include "warn/warn.h"

#include <assert.h>
#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/xfrm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <urcu/urcu-qsbr.h>

#include "base/clock.h"
#include "base/haste.h"
#include "base/tsan.h"
#include "fib/fib.h"
#include "tap-bridge/netns.h"
#include "warn/impl.h"

#define POLL_MS      5000u
#define SCAN_MAX_MS  300000u /* more than a scan of all devices needs */
#define EVENT_MS     100u    /* delay of a scan after an event, to collect more events */
#define REST         50u     /* pause after a scan, in multiples of its CPU time */
#define EVENTS_BYTES 16384   /* receive buffer; small: a lost event starts a scan, too */
#define EVENTS_MAX   1000u   /* datagrams that are read before a scan */
#define ROWS_MAX     256u    /* rows in one reply of rib or neigh */
#define N_QUERIES    4u      /* before each scan */

/* --- the scan ------------------------------------------------------------------------- */

/* Copy ifindex and name of each interface of the FIB. */
static void
own_collect(struct warn *w)
{
	w->n_own = 0;
	for (unsigned int i = 1; i < IFIDX_MAX; i++) {
		const struct fib_iface *iface = fib_iface(w->conf.fib, i);

		if (iface == NULL || iface->ifindex == 0)
			continue;
		if (w->n_own == w->room_own) {
			unsigned int room = w->room_own == 0 ? 64 : w->room_own * 2;
			struct own *more = realloc(w->own, room * sizeof(*more));

			if (more == NULL)
				abort(); /* no memory for some octets per interface */
			w->own = more;
			w->room_own = room;
		}
		w->own[w->n_own] = (struct own){.ifindex = iface->ifindex};
		memcpy(w->own[w->n_own++].name, iface->name, sizeof(iface->name));
	}
}

/*
 * Run all parts of the scan in order: devices_scan() needs the values of `all`,
 * netfilter_scan() needs the names of devices, and outer_scan() needs the devices and
 * policies that devices_scan() and ipsec_scan() have found.
 */
static void
parts_scan(struct warn *w)
{
	static void (*const part[])(struct warn *) = {
		sysctls_scan,   devices_scan, netfilter_scan, iptables_scan, ipvs_scan,
		addrlabel_scan, ipsec_scan,   seg6_scan,      nexthops_scan, outer_scan};

	for (unsigned int i = 0; i < sizeof(part) / sizeof(part[0]); i++)
		if (!ask_is_ending(w))
			part[i](w);
}

/*
 * Warn if the control namespace has lost its name: programs that are started by the name,
 * such as FRR, are then in another namespace than the TAPs.
 */
static void
namespace_scan(struct warn *w)
{
	char where[80];

	if (!netns_name_is_lost(w->conf.netns))
		return;
	snprintf(where, sizeof(where), "control-netns %s", w->conf.netns);
	list_add(&w->list, WARNING_NAMESPACE, where,
		 "The name is that of another network namespace, or of none: `ip netns` "
		 "does not reach the TAPs.",
		 "TAPs and FPM listener stay in the namespace that had the name at the "
		 "start. fpmctl restart moves them to the namespace that has it now.");
}

static void
scan_in_netns(struct warn *w)
{
	struct netns_guard guard;
	unsigned int missed;
	int rc = netns_enter(w->conf.netns, &guard);

	if (rc < 0) {
		if (log_allowed(&w->netns_log, &missed))
			log_warn("warn: namespace not entered error=\"%s\" missed=%u",
				 strerror(-rc), missed);
		unread_add(w, "control namespace", rc);
		return;
	}
	parts_scan(w);
	netns_leave(&guard);
}

static void
scan_later(struct warn *w, double s)
{
	struct ev_loop *loop = w->w->loop;

	ev_timer_stop(loop, &w->due);
	ev_now_update(loop);
	ev_timer_set(&w->due, s, 0.);
	ev_timer_start(loop, &w->due);
}

static void
events_watch(struct warn *w)
{
	if (w->events >= 0)
		ev_io_start(w->w->loop, &w->events_io);
	if (w->nft_events >= 0)
		ev_io_start(w->w->loop, &w->nft_events_io);
	if (w->xfrm_events >= 0)
		ev_io_start(w->w->loop, &w->xfrm_events_io);
}

static void
warnings_scan(struct warn *w)
{
	double begin_s = thread_cpu_s();
	double poll_s = haste_ms(POLL_MS) / 1000.;

	own_collect(w);
	list_begin(&w->list);
	rules_scan(w);
	tunnels_scan(w);
	namespace_scan(w);
	GRACE_QUIESCENT();
	urcu_qsbr_thread_offline();
	/*
	 * Each of many requests may wait for the kernel. The watchdog must not end the
	 * daemon because of these waits.
	 */
	worker_suspend_watchdog(SCAN_MAX_MS);
	scan_in_netns(w);
	worker_suspend_watchdog(0);
	urcu_qsbr_thread_online();
	if (ask_is_ending(w))
		return; /* the list is not complete */
	list_end(&w->list);
	w->rest_s = (thread_cpu_s() - begin_s) * REST;
	w->scanned_s = monotonic_s();
	scan_later(w, w->rest_s > poll_s ? w->rest_s : poll_s);
	events_watch(w);
}

/* --- the answers of rib and neigh ----------------------------------------------------- */

/* Send the next query, or the last query again if its answer has more rows. */
static void
query_ask(struct warn *w, struct msg_query *q)
{
	static const enum query_kind kind[N_QUERIES] = {QUERY_RULES, QUERY_THROUGH,
							QUERY_LINKS, QUERY_TUNNELS};
	json_t *const rows[N_QUERIES] = {w->rules, w->through, w->links, w->tunnels};

	q->m.type = MSG_QUERY;
	q->kind = kind[w->n_asked];
	q->rows = rows[w->n_asked];
	q->max = (unsigned int)json_array_size(q->rows) + ROWS_MAX;
	w->asked = true;
	worker_send(q->kind == QUERY_TUNNELS ? w->conf.neigh : w->conf.rib, &q->m);
}

static void
query_begin(struct warn *w)
{
	struct msg_query *q = msg_new(MSG_QUERY, sizeof(*q));

	q->from = w->w;
	query_ask(w, q);
}

static void
scan_begin(struct warn *w)
{
	if (w->asked)
		return; /* the scan follows the answer */
	json_array_clear(w->rules);
	json_array_clear(w->through);
	json_array_clear(w->links);
	json_array_clear(w->tunnels);
	w->n_asked = 0;
	query_begin(w);
}

static void
query_answered(struct warn *w, struct msg_query *q)
{
	w->asked = false;
	if (!q->done) {
		query_ask(w, q);
		return;
	}
	msg_free(&q->m);
	if (++w->n_asked == N_QUERIES)
		warnings_scan(w);
	else
		query_begin(w);
}

/* --- events --------------------------------------------------------------------------- */

static void
events_drain(int fd)
{
	uint8_t octet;

	for (unsigned int i = 0; i < EVENTS_MAX; i++)
		if (recv(fd, &octet, sizeof(octet), MSG_DONTWAIT | MSG_TRUNC) < 0 &&
		    errno == EAGAIN)
			return;
}

static void
warn_on_due(struct ev_loop *loop, ev_timer *timer, int revents)
{
	struct warn *w = timer->data;

	ev_timer_stop(loop, timer);
	/* A change from now on is an event for the next scan. */
	if (w->events >= 0)
		events_drain(w->events);
	if (w->nft_events >= 0)
		events_drain(w->nft_events);
	if (w->xfrm_events >= 0)
		events_drain(w->xfrm_events);
	scan_begin(w);
}

/*
 * Schedule a scan. The content of the event does not matter. Later events wait until that
 * scan.
 */
static void
warn_on_event(struct ev_loop *loop, ev_io *io, int revents)
{
	struct warn *w = io->data;
	double past_s = monotonic_s() - w->scanned_s, in_s = haste_ms(EVENT_MS) / 1000.;

	ev_io_stop(loop, &w->events_io);
	ev_io_stop(loop, &w->nft_events_io);
	if (!w->asked)
		scan_later(w, w->rest_s - past_s > in_s ? w->rest_s - past_s : in_s);
}

/*
 * Handle a change of IPsec policies. Until the next scan has read the policies, assume that
 * there is a policy, because packets may not bypass a policy. These events are always read,
 * even while other events wait for the next scan.
 */
static void
warn_on_xfrm(struct ev_loop *loop, ev_io *io, int revents)
{
	struct warn *w = io->data;

	events_drain(w->xfrm_events);
	atomic_store_explicit(&w->conf.fib->tunnels_state, FIB_TUNNELS_IPSEC,
			      memory_order_relaxed);
	/* If another event has stopped events_io, a scan follows anyway. */
	if (ev_is_active(&w->events_io) || w->events < 0)
		warn_on_event(loop, io, revents);
}

/* Open a socket for events. Returns -1 on an error; the kernel may lack the protocol. */
static int
events_open(const char *netns, int protocol, const int *group, unsigned int n)
{
	struct sockaddr_nl any = {.nl_family = AF_NETLINK};
	struct netns_guard guard;
	int size = EVENTS_BYTES, fd;

	if (netns_enter(netns, &guard) < 0)
		return -1;
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
	netns_leave(&guard);
	if (fd < 0)
		return -1;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (bind(fd, (struct sockaddr *)&any, sizeof(any)) < 0) {
		close(fd);
		return -1;
	}
	/* If a group is missing, the periodic scans find its changes. */
	for (unsigned int i = 0; i < n; i++)
		(void)setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group[i],
				 sizeof(group[i]));
	return fd;
}

/* --- the thread ----------------------------------------------------------------------- */

static int
warn_init(struct worker *worker)
{
	static const int route[] = {RTNLGRP_LINK,         RTNLGRP_TC,
				    RTNLGRP_IPV4_RULE,    RTNLGRP_IPV6_RULE,
				    RTNLGRP_IPV4_NETCONF, RTNLGRP_IPV6_NETCONF};
	static const int nft[] = {NFNLGRP_NFTABLES};
	static const int xfrm[] = {XFRMNLGRP_POLICY};
	struct warn *w = worker->ctx;

	w->buffer = malloc(ASK_BUFFER_BYTES);
	if (w->buffer == NULL)
		return -ENOMEM;
	w->events = events_open(w->conf.netns, NETLINK_ROUTE, route,
				sizeof(route) / sizeof(route[0]));
	w->nft_events = events_open(w->conf.netns, NETLINK_NETFILTER, nft, 1);
	w->xfrm_events = events_open(w->conf.netns, NETLINK_XFRM, xfrm, 1);
	ev_io_init(&w->events_io, warn_on_event, w->events, EV_READ);
	ev_io_init(&w->nft_events_io, warn_on_event, w->nft_events, EV_READ);
	ev_io_init(&w->xfrm_events_io, warn_on_xfrm, w->xfrm_events, EV_READ);
	ev_init(&w->due, warn_on_due);
	w->events_io.data = w->nft_events_io.data = w->due.data = w;
	w->xfrm_events_io.data = w;
	scan_later(w, 0.);
	return 0;
}

static void
warn_on_query(struct warn *w, struct msg_query *q)
{
	q->done = list_rows(&w->list, &q->cursor[0], q->max, q->rows);
	q->m.type = MSG_REPLY;
	worker_send(q->from, &q->m);
}

static void
warn_on_msg(struct worker *worker, struct msg *m)
{
	struct warn *w = worker->ctx;

	switch (m->type) {
	case MSG_REPLY:
		query_answered(w, caa_container_of(m, struct msg_query, m));
		return;
	case MSG_QUERY:
		warn_on_query(w, caa_container_of(m, struct msg_query, m));
		return;
	default:
		assert(!"message not for warn");
		break;
	}
	msg_free(m);
}

static void
warn_fini(struct worker *worker)
{
	struct warn *w = worker->ctx;

	ev_io_stop(worker->loop, &w->events_io);
	ev_io_stop(worker->loop, &w->nft_events_io);
	ev_io_stop(worker->loop, &w->xfrm_events_io);
	ev_timer_stop(worker->loop, &w->due);
	if (w->events >= 0)
		close(w->events);
	if (w->nft_events >= 0)
		close(w->nft_events);
	if (w->xfrm_events >= 0)
		close(w->xfrm_events);
	w->events = w->nft_events = w->xfrm_events = -1;
	free(w->buffer);
	free(w->own);
	w->buffer = NULL;
	w->own = NULL;
	w->n_own = w->room_own = 0;
}

static const struct worker_ops warn_ops = {
	.name = "warn",
	.role = ROLE_WARN,
	.init = warn_init,
	.on_msg = warn_on_msg,
	.fini = warn_fini,
};

int
warn_setup(struct worker *worker, const struct warn_conf *conf)
{
	struct warn *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return -ENOMEM;
	w->w = worker;
	w->conf = *conf;
	w->events = w->nft_events = w->xfrm_events = -1;
	w->rules = json_array();
	w->through = json_array();
	w->links = json_array();
	w->tunnels = json_array();
	worker_init(worker, &warn_ops, w);
	return w->rules == NULL || w->through == NULL || w->links == NULL ||
			       w->tunnels == NULL
		       ? -ENOMEM
		       : list_init(&w->list);
}

void
warn_teardown(struct worker *worker)
{
	struct warn *w = worker->ctx;

	if (w == NULL)
		return;
	list_free(&w->list);
	json_decref(w->rules);
	json_decref(w->through);
	json_decref(w->links);
	json_decref(w->tunnels);
	free(w);
	worker->ctx = NULL;
}
