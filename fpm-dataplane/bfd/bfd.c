/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bfd: the bfd thread: its messages, its timers, its end. While the key `bfd.dplane` is
 * absent, the thread only answers queries.                                           [bfd]
 */
#include "bfd/bfd.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/sched.h"
#include "bfd/impl.h"
#include "bfd/rows.h"
#include "fib/fib.h"

static const char *
session_dev(const struct bfd *b, const struct session *s)
{
	const struct fib_iface *iface =
		s->place.ifidx == 0 ? NULL : fib_iface(b->fib, s->place.ifidx);

	return iface != NULL                  ? iface->name
	       : s->k->told.ifname[0] != '\0' ? s->k->told.ifname
					      : NULL;
}

static void
session_row(struct bfd *b, struct session *s, json_t *rows)
{
	static const char *const by[] = {NULL, "forwarders", "kernel"};
	static const struct ipaddr none;
	const struct kept *k = s->k;
	const struct bfd_fsm *f = &k->fsm;
	const struct fib_vrf *vrf =
		s->place.vrf == 0 ? NULL : fib_vrf(b->fib, s->place.vrf);
	struct bfd_dplane_counters c;

	session_counters(b, s, &c);
	bfd_row(rows, &(struct bfd_row_in){
			      .peer = k->told.dst,
			      .local = s->place.local,
			      .family = k->told.family,
			      .has_local = !ipaddr_equal(&s->place.local, &none),
			      .dev = session_dev(b, s),
			      .vrf = vrf == NULL ? NULL : vrf->name,
			      .state = bfd_state_name(f->state),
			      .by = by[s->place.by],
			      .reason = s->place.reason,
			      .diag = f->diag,
			      .remote_diag = f->remote_diag,
			      .discr = f->my_discr,
			      .remote_discr = f->your_discr,
			      .lid = k->told.lid,
			      .mult = f->conf.mult,
			      .remote_mult = f->remote_mult,
			      .tx_us = k->told.min_tx_us,
			      .rx_us = k->told.min_rx_us,
			      .remote_tx_us = f->remote_min_tx_us,
			      .remote_rx_us = f->remote_min_rx_us,
			      .interval_us = bfd_fsm_tx_us(f),
			      .detect_us = bfd_fsm_detect_us(f),
			      .echo_us = session_echo_us(s),
			      .multihop = f->conf.multihop,
			      .echo = f->conf.echo,
			      .passive = f->conf.passive,
			      .shutdown = f->conf.shutdown,
			      .pruned = k->pruned,
			      .downs = f->n_downs,
			      .since_s = (boottime_ms() - s->since_ms) / 1000,
			      .rx_packets = c.control_in_packets,
			      .tx_packets = c.control_out_packets,
			      .rx_bytes = c.control_in_octets,
			      .tx_bytes = c.control_out_octets,
			      .echo_rx_packets = c.echo_in_packets,
			      .echo_tx_packets = c.echo_out_packets,
			      .echo_rx_bytes = c.echo_in_octets,
			      .echo_tx_bytes = c.echo_out_octets,
		      });
}

/* Update the values of base/bfd_status.h. */
static void
status_renew(struct bfd *b)
{
	uint32_t by_state[4] = {0}, not_served = 0;
	uint64_t rx = b->ended_rx, tx = b->ended_tx;

	for (uint32_t i = 1; i < b->high; i++) {
		const struct session *s = &b->session[i];
		struct bfd_dplane_counters c;

		if (s->k == NULL)
			continue;
		by_state[s->k->fsm.state & 3]++;
		not_served += s->place.by == BY_NONE;
		session_counters(b, s, &c);
		rx += c.control_in_packets;
		tx += c.control_out_packets;
	}
	for (unsigned int i = 0; i < 4; i++)
		STATUS_SET(sessions[i], by_state[i]);
	STATUS_SET(not_served, not_served);
	STATUS_SET(rx_packets, rx);
	STATUS_SET(tx_packets, tx);
}

static void
bfd_on_tick(struct ev_loop *loop, ev_timer *timer, int revents)
{
	struct bfd *b = timer->data;

	b->connect_failed = false;
	if (b->kept_to_store)
		keep_store(b);
	conns_tick(b);
	sessions_place(b);
	kernel_tick(b);
	sessions_keep_counters(b);
	lend_pace(b);
	status_renew(b);
	if (++b->n_ticks % BFD_PEER_S == 0)
		sessions_tell_peers(b);
}

static int
bfd_init(struct worker *w)
{
	struct bfd *b = w->ctx;
	int rc;

	if (!b->setup.conf.on)
		return 0;
	/*
	 * Ask for the real-time priority first, because the sessions of the previous daemon
	 * wait for their packets.
	 */
	b->may_lend = sched_real_time() == 0;
	if (!b->may_lend) {
		log_info("bfd: no real-time priority see=LimitRTPRIO,RestrictRealtime");
		sched_short_slice();
	}
	b->random = monotonic_ns() | 1;
	b->high = 1;
	kernel_begin(b);
	rc = timers_begin(b);
	if (rc < 0)
		return rc;
	if (b->kept_to_store)
		keep_store(b); /* before the many messages about connections */
	conns_begin(b);
	sessions_resume(b);
	ev_timer_init(&b->tick, bfd_on_tick, 0., 1.);
	b->tick.data = b;
	ev_timer_start(w->loop, &b->tick);
	timers_arm(b);
	return 0;
}

static void
bfd_on_round(struct worker *w)
{
	struct bfd *b = w->ctx;

	if (!b->setup.conf.on)
		return;
	rings_take(b);
	if (b->kernel_ready)
		sockets_take(b);
	lend_look(b);
	timers_judge(b);
	conns_plan(b);
	timers_arm(b);
}

static void
bfd_on_msg(struct worker *w, struct msg *m)
{
	struct bfd *b = w->ctx;
	struct msg_query *q;

	switch (m->type) {
	case MSG_RECLAIM:
		worker_reclaim(w, m);
		return;
	case MSG_QUERY:
		q = caa_container_of(m, struct msg_query, m);
		for (uint32_t i = 1; i < b->high; i++)
			if (b->session[i].k != NULL)
				session_row(b, &b->session[i], q->rows);
		q->done = true;
		q->m.type = MSG_REPLY;
		worker_send(q->from, &q->m);
		return;
	default:
		assert(!"message not for bfd");
		break;
	}
	msg_free(m);
}

/*
 * End the thread. The sessions stay in shared memory and the connections stay open for the
 * next daemon.
 */
static void
bfd_fini(struct worker *w)
{
	struct bfd *b = w->ctx;

	if (!b->setup.conf.on)
		return;
	ev_timer_stop(w->loop, &b->tick);
	sessions_keep_counters(b);
	conns_end(b);
	kernel_close(b);
	timers_end(b);
	keep_end(b);
}

static const struct worker_ops bfd_ops = {
	.name = "bfd",
	.role = ROLE_BFD,
	.init = bfd_init,
	.on_msg = bfd_on_msg,
	.on_round = bfd_on_round,
	.fini = bfd_fini,
};

int
bfd_setup(struct worker *w, const struct bfd_setup *setup)
{
	struct bfd *b = calloc(1, sizeof(*b));

	if (b == NULL)
		return -ENOMEM;
	b->setup = *setup;
	b->fib = setup->fib;
	b->w = w;
	b->kept_fd = b->timer_fd = -1;
	b->lend_at = DUE_NEVER;
	if (setup->conf.on)
		b->count = counters_register("bfd");
	worker_init(w, &bfd_ops, b);
	return 0;
}

int
bfd_take_over(struct worker *w)
{
	struct bfd *b = w->ctx;
	int rc;

	if (!b->setup.conf.on)
		return 0;
	rc = keep_begin(b);
	if (rc == 0)
		sessions_tell_dead_hops(b);
	return rc;
}

void
bfd_teardown(struct worker *w)
{
	free(w->ctx);
	w->ctx = NULL;
}
