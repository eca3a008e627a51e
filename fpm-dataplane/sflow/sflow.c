/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sflow: the sflow thread: its settings, its timers, its messages. While sFlow is off the
 * thread sleeps, and the forwarders have no settings.
 * [sflow]
 */
#include "sflow/sflow.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/msg_manage.h"
#include "sflow/impl.h"

#define TICK_S 0.01

/* --- settings ------------------------------------------------------------------------- */

static void
set_free(void *owner, void *set)
{
	free(set);
}

/* Give the forwarders their settings; NULL: sFlow is off. */
static void
set_swap(struct sflow *s, struct watch_set *set)
{
	struct watch_set *old = atomic_exchange(&s->setup.watch->set, set);

	if (old != NULL)
		worker_defer(s->w, set_free, old);
}

static struct watch_set *
set_make(struct sflow *s)
{
	struct watch_set *set = calloc(1, sizeof(*set));

	if (set == NULL)
		abort();
	set->epoch = ++s->epoch;
	set->sample_rate = s->now.rate;
	set->sample_bytes = (uint16_t)s->now.header_bytes;
	set->sample_drops = s->now.drops && s->now.n_collector != 0;
	return set;
}

/* Start or stop the timers of the thread. */
static void
timers_switch(struct sflow *s, bool on)
{
	if (!on) {
		ev_timer_stop(s->w->loop, &s->tick);
		ev_timer_stop(s->w->loop, &s->second);
		return;
	}
	ev_timer_start(s->w->loop, &s->tick);
	ev_timer_start(s->w->loop, &s->second);
}

static void
settings_apply(struct sflow *s, const struct sflow_conf *conf)
{
	bool was = sflow_is_on(&s->now), on = sflow_is_on(conf);

	s->now = *conf;
	STATUS_SET(rate, on ? conf->rate : 0);
	collectors_reset(s);
	psample_reset(s);
	if (on && !was) {
		watch_populate(s->setup.watch);
		records_drop(s);
		/* The pool begins at 0, and so must the numbers of samples (sFlow 5). */
		for (unsigned int i = 1; i < PORT_MAX; i++) {
			s->source[i].base += source_pool(s, i);
			s->source[i].sequence = 0;
		}
	}
	if (on || was) {
		set_swap(s, on ? set_make(s) : NULL);
		timers_switch(s, on);
	}
}

/* --- the thread ----------------------------------------------------------------------- */

static void
sflow_on_tick(struct ev_loop *loop, ev_timer *timer, int revents)
{
	records_take(timer->data, monotonic_ns());
}

static void
sflow_on_second(struct ev_loop *loop, ev_timer *timer, int revents)
{
	struct sflow *s = timer->data;

	collectors_look(s);
	collectors_open(s);
	psample_look(s);
	s->n_seconds++;
	counters_send(s);
}

static int
sflow_init(struct worker *w)
{
	struct sflow *s = w->ctx;

	s->began_ms = monotonic_ms();
	limits_set(s);
	ev_timer_init(&s->tick, sflow_on_tick, TICK_S, TICK_S);
	ev_timer_init(&s->second, sflow_on_second, 1., 1.);
	s->tick.data = s->second.data = s;
	settings_apply(s, &s->setup.conf);
	return 0;
}

static void
sflow_on_msg(struct worker *w, struct msg *m)
{
	struct sflow *s = w->ctx;
	struct msg_query *q;

	switch (m->type) {
	case MSG_REPLY:
		batch_answered(s, caa_container_of(m, struct batch, masks.q.m));
		return;
	case MSG_RECLAIM:
		worker_reclaim(w, m);
		return;
	case MSG_SFLOW:
		settings_apply(s, &caa_container_of(m, struct msg_sflow, m)->conf);
		break;
	case MSG_QUERY:
		q = caa_container_of(m, struct msg_query, m);
		sflow_rows(s, q->rows);
		q->done = true;
		q->m.type = MSG_REPLY;
		worker_send(q->from, &q->m);
		return;
	default:
		assert(!"message not for sflow");
		break;
	}
	msg_free(m);
}

static void
sflow_fini(struct worker *w)
{
	struct sflow *s = w->ctx;
	const struct sflow_conf off = {0};

	settings_apply(s, &off);
}

static const struct worker_ops sflow_ops = {
	.name = "sflow",
	.role = ROLE_SFLOW,
	.init = sflow_init,
	.on_msg = sflow_on_msg,
	.fini = sflow_fini,
};

int
sflow_setup(struct worker *w, const struct sflow_setup *setup)
{
	struct sflow *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return -ENOMEM;
	s->setup = *setup;
	s->w = w;
	for (unsigned int i = 0; i < SFLOW_COLLECTORS_MAX; i++)
		s->collector[i].fd = -1;
	s->psample.fd = -1;
	worker_init(w, &sflow_ops, s);
	return 0;
}

void
sflow_teardown(struct worker *w)
{
	free(w->ctx);
	w->ctx = NULL;
}
