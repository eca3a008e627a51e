/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The neigh thread: two kernel monitors, a few timers and a mailbox, wired to the files
 * beside this one. Events come in and are acted on at once; what is asked of the kernel and
 * what waits for a grace period is gathered and sent once a round. It waits for nobody, and
 * frees what forwarders may still read only after a grace period, here.
 *
 * The end: worker_stop(), urcu_qsbr_barrier(), worker_free(), neigh_teardown(), and only
 * then fib_destroy(): it needs the hosts gone.
 */
#include "neigh/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/msg_manage.h"
#include "base/limits.h"

/* --- events ------------------------------------------------------------------------------- */

static void
neigh_dispatch(struct neigh *n, struct kmon *km)
{
	static struct log_limit limit, overrun;
	struct kmon_stats before, after;
	unsigned int missed;
	int rc;

	kmon_stats(km, &before);
	rc = kmon_dispatch(km);
	kmon_stats(km, &after);
	if (after.resyncs != before.resyncs) {
		counter_add(&n->conf.count->resyncs, 1);
		if (log_allowed(&overrun, &missed))
			log_warn("neigh: kernel monitor overrun, all read again "
				 "changes=%llu "
				 "missed=%u",
				 (unsigned long long)after.last_resync_changes, missed);
	}
	if (rc == 0)
		return;
	n->resync = true;
	if (log_allowed(&limit, &missed))
		log_warn("neigh: kernel monitor failed error=%s missed=%u", strerror(-rc),
			 missed);
}

static void
neigh_on_control(struct ev_loop *loop, ev_io *io, int revents)
{
	struct neigh *n = io->data;

	neigh_dispatch(n, n->control);
}

static void
neigh_on_behind(struct ev_loop *loop, ev_io *io, int revents)
{
	struct neigh *n = io->data;

	neigh_dispatch(n, n->behind);
}

static void
neigh_on_retry(struct ev_loop *loop, ev_timer *timer, int revents)
{
	struct neigh *n = timer->data;

	link_retry_vlans(n);
	if (n->resync) {
		n->resync = kmon_resync(n->control) < 0 ||
			    (n->behind != NULL && kmon_resync(n->behind) < 0);
	}
	ports_reopen_lost(n);
	carrier_say_rest(n);
	if (n->untold && n->n_nb <= table_capacity(n->most_known)) {
		n->untold = false;
		kmon_tell_neighbors(n->control);
	}
	nb_retry(n);
}

static void
neigh_on_carrier(struct ev_loop *loop, ev_timer *timer, int revents)
{
	carrier_poll(timer->data);
}

static void
neigh_on_sweep(struct ev_loop *loop, ev_timer *timer, int revents)
{
	host_sweep(timer->data);
}

static void
neigh_on_glean(struct ev_loop *loop, ev_timer *timer, int revents)
{
	glean_expire(timer->data);
}

static void
neigh_on_port(struct neigh *n, const struct msg_port *m)
{
	if (m->gone)
		ports_remove(n, m->ifidx);
	else
		ports_add(n, &n->conf.port[m->ifidx - 1]);
	sem_post(m->done);
}

static void
neigh_on_msg(struct worker *w, struct msg *m)
{
	struct neigh *n = w->ctx;

	switch (m->type) {
	case MSG_RECLAIM:
		worker_reclaim(w, m);
		return;
	case MSG_ADJ_WATCH:
		ASSERT_ROLE(ROLE_NEIGH);
		watch_add(n, caa_container_of(m, struct msg_adj, m));
		return;
	case MSG_ADJ_UNWATCH:
		watch_remove(n, caa_container_of(m, struct msg_adj, m));
		return;
	case MSG_GLEAN:
		glean_ask(n, caa_container_of(m, struct msg_neigh, m));
		break;
	case MSG_GLEAN_OVER:
		glean_over(n, caa_container_of(m, struct msg_neigh, m));
		break;
	case MSG_PORT:
		neigh_on_port(n, (struct msg_port *)m);
		break;
	case MSG_QUERY:
		query_answer(n, caa_container_of(m, struct msg_query, m));
		return;
	default:
		log_error("neigh: message not for us type=%d", (int)m->type);
		break;
	}
	msg_free(m);
}

static void
neigh_on_round(struct worker *w)
{
	struct neigh *n = w->ctx;

	iface_borrow(n);
	iface_vlan_macs(n);
	nb_ask_flush(n);
	neigh_retire_flush(n);
	carrier_announce(n);
}

/* --- birth and death ---------------------------------------------------------------------- */

static void
neigh_fini(struct worker *w)
{
	struct neigh *n = w->ctx;

	ev_io_stop(w->loop, &n->control_io);
	ev_io_stop(w->loop, &n->behind_io);
	ev_timer_stop(w->loop, &n->retry_timer);
	ev_timer_stop(w->loop, &n->carrier_timer);
	ev_timer_stop(w->loop, &n->sweep_timer);
	ev_timer_stop(w->loop, &n->glean_timer);
	kmon_close(n->control);
	kmon_close(n->behind);
	n->control = n->behind = NULL;
	/* Here, because only a thread known to RCU may take nodes out. */
	for (uint32_t i = 0; i < n->n_slot; i++)
		if (n->nb_slot[i] != NULL)
			host_apply(n, n->nb_slot[i], 0);
	neigh_retire_flush(n);
}

static int
neigh_init(struct worker *w)
{
	static const struct kmon_ops control_ops = {.link = link_event,
						    .conf = iface_conf_event,
						    .addr = addr_event,
						    .neigh = neigh_event};
	struct neigh *n = w->ctx;
	/* Carriers first: TAPs are then reported as they will be. */
	int rc = ports_setup(n);

	carrier_poll(n);
	carrier_settle(n);
	if (rc == 0)
		rc = kmon_open(&n->control, n->conf.netns, &control_ops, n);
	if (rc < 0) {
		log_error("neigh: kernel monitor not opened netns=%s error=%s",
			  n->conf.netns != NULL ? n->conf.netns : "", strerror(-rc));
		neigh_fini(w);
		return rc;
	}
	ports_first_look(n);
	neigh_start_io(n, &n->control_io, n->control);
	ports_watch(n);
	neigh_start_timer(n, &n->retry_timer, RETRY_S);
	neigh_start_timer(n, &n->sweep_timer, SWEEP_S);
	return 0;
}

static void
neigh_begin_tables(struct neigh *n)
{
	const struct table_limits *limits = n->conf.limits;

	n->most_known = table_limit(limits, TABLE_neighbors);
	n->most_gleans = table_limit(limits, TABLE_asked);
	n->most_vlans = table_limit(limits, TABLE_vlans);
	n->most_vrfs = table_limit(limits, TABLE_vrfs);
	/* All next hops and questions have room, however many the kernel knows. */
	n->most_nb = n->most_known + n->fib->adj_hosts + n->most_gleans;
	table_begin(TABLE_hosts, n->fib->adj_end - n->fib->adj_hosts);
	table_begin(TABLE_neighbors, n->most_known);
	table_begin(TABLE_vlans, n->most_vlans);
	table_begin(TABLE_vrfs, n->most_vrfs);
	table_begin(TABLE_asked, n->most_gleans);
}

static const struct worker_ops neigh_ops = {
	.name = "neigh",
	.role = ROLE_NEIGH,
	.init = neigh_init,
	.on_msg = neigh_on_msg,
	.on_round = neigh_on_round,
	.fini = neigh_fini,
};

int
neigh_setup(struct worker *w, const struct neigh_conf *conf)
{
	struct neigh *n = calloc(1, sizeof(*n));

	if (n == NULL)
		return -ENOMEM;
	n->fib = conf->fib;
	n->watch = calloc(n->fib->adj_hosts, sizeof(*n->watch));
	n->free_adj = calloc(n->fib->adj_end - n->fib->adj_hosts, sizeof(*n->free_adj));
	if (n->watch == NULL || n->free_adj == NULL) {
		free(n->watch);
		free(n->free_adj);
		free(n);
		return -ENOMEM;
	}
	n->conf = *conf;
	n->worker = w;
	n->next_adj = n->fib->adj_hosts;
	n->iface_end = n->next_vlan = PORT_MAX;
	neigh_begin_tables(n);
	CDS_INIT_LIST_HEAD(&n->retry);
	CDS_INIT_LIST_HEAD(&n->wish);
	CDS_INIT_LIST_HEAD(&n->gleans);
	CDS_INIT_LIST_HEAD(&n->placeless);
	ev_init(&n->control_io, neigh_on_control);
	ev_init(&n->behind_io, neigh_on_behind);
	ev_init(&n->retry_timer, neigh_on_retry);
	ev_init(&n->carrier_timer, neigh_on_carrier);
	ev_init(&n->sweep_timer, neigh_on_sweep);
	ev_init(&n->glean_timer, neigh_on_glean);
	n->control_io.data = n->behind_io.data = n->retry_timer.data = n;
	n->carrier_timer.data = n->sweep_timer.data = n->glean_timer.data = n;

	worker_init(w, &neigh_ops, n);
	return 0;
}

void
neigh_teardown(struct worker *w)
{
	struct neigh *n = w->ctx;

	if (n == NULL)
		return;
	w->ctx = NULL;
	for (uint32_t i = 0; i < n->fib->adj_hosts; i++)
		free(n->watch[i]);
	nb_free_all(n);
	link_free_all(n);
	free(n->watch);
	free(n->free_adj);
	free(n);
}
