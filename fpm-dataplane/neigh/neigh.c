/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The neigh thread: two kernel monitors, timers and a mailbox, connected to the other files
 * of this folder. Events are handled at once. Requests to the kernel and frees after a
 * grace period are collected and sent once per round. The thread waits for no other thread.
 * It frees objects that forwarders may read only after a grace period.
 *
 * Order at the end: worker_stop(), urcu_qsbr_barrier(), worker_free(), neigh_teardown(),
 * and only then fib_destroy(), because the hash table of hosts must be empty by then.
 */
#include "neigh/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/msg_manage.h"
#include "base/limits.h"

/* --- events --------------------------------------------------------------------------- */

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
			log_warn("neigh: kernel monitor overrun effect=state-read-again "
				 "changes=%llu missed=%u",
				 (unsigned long long)after.last_resync_changes, missed);
	}
	if (rc == 0)
		return;
	n->resync = true;
	if (log_allowed(&limit, &missed))
		log_warn("neigh: kernel monitor failed error=\"%s\" missed=%u",
			 strerror(-rc), missed);
}

/*
 * Read the kernel's settings of IPv6 and the TTL of labels, for which it has no events. T
 * is the CPU time of this reading, without the time in which other programs had the CPU.
 * The next reading follows after 20 T or IPV6_POLL_S, whichever is longer. If an event
 * suggests a change, it may follow after 4 T.
 */
static void
neigh_read_ipv6(struct neigh *n)
{
	static struct log_limit limit;
	double begin_s = thread_cpu_s(), took_s;
	unsigned int missed;
	int rc = kmon_read_inet6(n->control);

	mpls_read_ttl(n);
	if (rc == 0)
		iface_inet6_missing(n);
	else if (log_allowed(&limit, &missed))
		log_warn("neigh: ipv6 settings not read error=\"%s\" missed=%u",
			 strerror(-rc), missed);
	took_s = thread_cpu_s() - begin_s;
	n->ipv6_read_at_s = monotonic_s() + 4 * took_s;
	n->ipv6_timer.repeat = 20 * took_s > IPV6_POLL_S ? 20 * took_s : IPV6_POLL_S;
	ev_timer_again(n->worker->loop, &n->ipv6_timer);
}

/* Read these settings at once, or as soon as they may be read again. */
static void
neigh_read_ipv6_soon(struct neigh *n)
{
	double wait_s = n->ipv6_read_at_s - monotonic_s();

	if (wait_s <= 0) {
		neigh_read_ipv6(n);
	} else if (wait_s < ev_timer_remaining(n->worker->loop, &n->ipv6_timer)) {
		n->ipv6_timer.repeat = wait_s;
		ev_timer_again(n->worker->loop, &n->ipv6_timer);
	}
}

static void
neigh_on_control(struct ev_loop *loop, ev_io *io, int revents)
{
	struct neigh *n = io->data;

	neigh_dispatch(n, n->control);
	if (kmon_inet6_is_due(n->control))
		neigh_read_ipv6_soon(n);
}

static void
neigh_on_ipv6(struct ev_loop *loop, ev_timer *timer, int revents)
{
	neigh_read_ipv6(timer->data);
}

static void
neigh_on_device(struct ev_loop *loop, ev_io *io, int revents)
{
	struct neigh *n = io->data;

	neigh_dispatch(n, n->device_mon);
}

static void
neigh_on_retry(struct ev_loop *loop, ev_timer *timer, int revents)
{
	struct neigh *n = timer->data;

	link_retry_vlans(n);
	if (n->resync || kmon_is_lost(n->control) ||
	    (n->device_mon != NULL && kmon_is_lost(n->device_mon))) {
		n->resync = kmon_resync(n->control) < 0 ||
			    (n->device_mon != NULL && kmon_resync(n->device_mon) < 0);
	}
	if (n->taps_unchecked)
		ports_check_taps(n);
	ports_reopen_lost(n);
	ports_set_again(n);
	ports_quiet_kernel(n);
	mpls_open(n);
	carrier_restore(n);
	carrier_log_pending(n);
	iface_inet6_log(n);
	if (n->nb_left_out && n->n_nb <= table_capacity(n->max_known)) {
		n->nb_left_out = false;
		kmon_report_neighbors(n->control);
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
	case MSG_RULE_IFACES:
		iface_rules_event(n, (struct msg_rule_ifaces *)m);
		return;
	case MSG_PORT:
		neigh_on_port(n, (struct msg_port *)m);
		break;
	case MSG_QUERY:
		query_answer(n, caa_container_of(m, struct msg_query, m));
		return;
	default:
		log_error("neigh: unexpected message type=%d", (int)m->type);
		break;
	}
	msg_free(m);
}

/* Publish the tables by which received packets find their tunnel or VXLAN. */
static void
neigh_publish_tunnels(struct neigh *n)
{
	vxlans_publish(n);
	tunnels_publish(n);
	n->below_due = false;
}

static void
neigh_on_round(struct worker *w)
{
	struct neigh *n = w->ctx;

	iface_borrow(n);
	iface_vlan_macs(n);
	macvlan_publish(n); /* before the numbers of removed macvlans are retired */
	neigh_publish_tunnels(n);
	svis_apply(n);
	link_catch_up(n);
	nb_ask_flush(n);
	neigh_retire_flush(n);
	carrier_announce(n);
}

/* --- start and end -------------------------------------------------------------------- */

static void
neigh_fini(struct worker *w)
{
	struct neigh *n = w->ctx;

	ev_io_stop(w->loop, &n->control_io);
	ev_io_stop(w->loop, &n->device_io);
	ev_timer_stop(w->loop, &n->retry_timer);
	ev_timer_stop(w->loop, &n->carrier_timer);
	ev_timer_stop(w->loop, &n->sweep_timer);
	ev_timer_stop(w->loop, &n->glean_timer);
	ev_timer_stop(w->loop, &n->ipv6_timer);
	kmon_close(n->control);
	kmon_close(n->device_mon);
	mpls_close(n);
	notify_close(n);
	n->control = n->device_mon = NULL;
	/*
	 * Remove the hosts here, because only a thread registered with RCU may remove
	 * nodes.
	 */
	for (uint32_t i = 0; i < n->n_slot; i++)
		if (n->nb_slot[i] != NULL)
			host_apply(n, n->nb_slot[i], 0);
	neigh_retire_flush(n);
}

static int
neigh_init(struct worker *w)
{
	static const struct kmon_ops control_ops = {.on_link = link_event,
						    .on_conf = iface_conf_event,
						    .on_mpls = mpls_event,
						    .on_inet6 = iface_inet6_event,
						    .on_addr = addr_event,
						    .on_vni = vni_event,
						    .on_fdb = fdb_event,
						    .wants_fdb = fdb_wanted,
						    .on_neigh = neigh_event};
	struct neigh *n = w->ctx;
	/* Set carriers first, so that the first reports of TAPs have their final state. */
	int rc = ports_setup(n);

	carrier_poll(n);
	carrier_set_missing(n);
	if (rc == 0)
		rc = kmon_open(&n->control, n->conf.netns, &control_ops, n);
	if (rc < 0) {
		log_error("neigh: kernel monitor not opened netns=%s error=\"%s\"",
			  n->conf.netns != NULL ? n->conf.netns : "", strerror(-rc));
		neigh_fini(w);
		return rc;
	}
	ports_check_taps(n);
	macvlan_publish(n);
	neigh_publish_tunnels(n);
	svis_apply(n);
	neigh_start_io(n, &n->control_io, n->control);
	ports_watch(n);
	neigh_start_timer(n, &n->retry_timer, RETRY_S);
	neigh_start_timer(n, &n->sweep_timer, SWEEP_S);
	neigh_read_ipv6(n);
	return 0;
}

static void
neigh_begin_tables(struct neigh *n)
{
	const struct table_limits *limits = n->conf.limits;

	n->max_known = table_limit(limits, TABLE_neighbors);
	n->max_gleans = table_limit(limits, TABLE_asked);
	n->max_vlans = table_limit(limits, TABLE_vlans);
	n->max_vrfs = table_limit(limits, TABLE_vrfs);
	/*
	 * Watched next hops and gleans have room even when the kernel's neighbors reach
	 * their limit.
	 */
	n->max_nb = n->max_known + n->fib->adj_hosts + n->max_gleans;
	table_begin(TABLE_hosts, n->fib->adj_end - n->fib->adj_hosts);
	table_begin(TABLE_neighbors, n->max_known);
	table_begin(TABLE_vlans, n->max_vlans);
	table_begin(TABLE_vrfs, n->max_vrfs);
	table_begin(TABLE_asked, n->max_gleans);
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
	n->mpls_file[0] = n->mpls_file[1] = n->notify_fd = -1;
	atomic_store_explicit(&n->fib->mpls_known, conf->mpls_all, memory_order_relaxed);
	n->next_adj = n->fib->adj_hosts;
	n->iface_end = n->next_vlan = PORT_MAX;
	neigh_begin_tables(n);
	CDS_INIT_LIST_HEAD(&n->retry);
	CDS_INIT_LIST_HEAD(&n->to_ask);
	CDS_INIT_LIST_HEAD(&n->gleans);
	CDS_INIT_LIST_HEAD(&n->no_slot);
	ev_init(&n->control_io, neigh_on_control);
	ev_init(&n->device_io, neigh_on_device);
	ev_init(&n->retry_timer, neigh_on_retry);
	ev_init(&n->carrier_timer, neigh_on_carrier);
	ev_init(&n->sweep_timer, neigh_on_sweep);
	ev_init(&n->glean_timer, neigh_on_glean);
	ev_init(&n->ipv6_timer, neigh_on_ipv6);
	n->control_io.data = n->device_io.data = n->retry_timer.data = n;
	n->carrier_timer.data = n->sweep_timer.data = n->glean_timer.data = n;
	n->ipv6_timer.data = n;

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
	for (uint16_t i = 1; i < n->iface_end; i++)
		mac_release(&n->iface[i]);
	nb_free_all(n);
	link_free_all(n);
	free(n->rule_ifaces);
	vnis_free(n);
	free(n->watch);
	free(n->free_adj);
	free(n);
}
