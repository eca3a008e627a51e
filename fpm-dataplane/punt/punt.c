/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * punt: the punt thread. It takes the packets that forwarders punted, class by class, and
 * handles each by its reason. The thread may be slow, but it never delays a forwarder.
 */
#include "punt/punt.h"

#include <errno.h>
#include <stdlib.h>

#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_ring.h>

#include "base/clock.h"
#include "base/inet.h"
#include "base/log.h"
#include "base/msg_manage.h"
#include "base/peers.h"
#include "base/limits.h"
#include "punt/internal.h"
#include "punt/pmtu.h"
#include "punt/tunnel.h"

/*
 * A turn serves all classes in order, with a limit for each ring. So a packet of a peer
 * waits for at most TURN_OPEN packets of each open class and forwarder, however many are in
 * the rings. After TURNS turns the thread serves its sockets and timers.
 */
#define TURNS          16
#define TURN_PROTECTED 64
#define TURN_OPEN      8

static void
punt_handle(struct punt *p, struct rte_mbuf *m)
{
	struct packet_meta *meta = packet_meta(m);

	if (meta->in_ifidx == 0) { /* a BFD packet of ours that has no neighbor yet */
		punt_forward(p, m, meta->family, true, true);
		return;
	}
	if (meta->inner_at != 0) {
		if (meta->reason >= PUNT_unresolved)
			punt_tunnel_take(m);
		else
			meta->in_ifidx = meta->outer_ifidx; /* the kernel decapsulates it */
	}
	switch (meta->reason) {
	case PUNT_unresolved:
		punt_forward_in_turn(p, m);
		break;
	case PUNT_ttl_expired:
	case PUNT_unreach:
		/* The forwarder has counted the drop. */
		punt_tell_sender(p, m, meta->cause);
		break;
	case PUNT_too_big:
		punt_fragment(p, m, meta->mtu_bytes);
		break;
	default:
		if (meta->reason == PUNT_local || meta->reason == PUNT_local_control)
			punt_pmtu_look(p, m);
		tap_deliver(p, m);
	}
}

/* Handle up to `max` packets of one forwarder and class. Returns their number. */
static unsigned int
punt_drain(struct punt *p, unsigned int fwd, enum punt_class class, unsigned int max)
{
	struct rte_mbuf *m[TURN_PROTECTED];
	unsigned int n = rte_ring_sc_dequeue_burst(p->conf.rings[fwd].punt[class],
						   (void **)m, max, NULL);

	for (unsigned int i = 0; i < n; i++) {
		packet_meta(m[i])->fwd = (uint16_t)fwd;
		punt_handle(p, m[i]);
	}
	counter_add(&p->count->class[class].taken, n);
	if (n > 0 && class == CLASS_glean)
		/*
		 * Release: a forwarder that reads the count also sees which of these
		 * packets were injected.
		 */
		atomic_fetch_add_explicit(p->conf.rings[fwd].n_gleaned, n,
					  memory_order_release);
	return n;
}

static unsigned int
punt_turn(struct punt *p)
{
	unsigned int n = 0;

	for (enum punt_class c = 0; c < N_PUNT_CLASS; c++) {
		if (c == CLASS_bfd && p->conf.bfd_elsewhere)
			continue;
		for (unsigned int f = 0; f < p->conf.n_fwd; f++)
			n += punt_drain(p, f, c,
					c < CLASS_FIRST_OPEN ? TURN_PROTECTED : TURN_OPEN);
	}
	return n;
}

static void
punt_round(struct worker *w)
{
	struct punt *p = w->ctx;

	for (unsigned int i = 0; i < TURNS; i++)
		if (punt_turn(p) == 0)
			return;
	worker_wake(w);
}

static void
punt_on_link(struct punt *p, const struct msg_link *link)
{
	/* Read the TAP again, because reading stopped when the TAP went down. */
	if (link->ifidx != 0 && link->ifidx < PORT_MAX && !link->gone &&
	    p->tap_io[link->ifidx - 1].data != NULL)
		tap_poll(p, link->ifidx - 1u, true);
}

static void
punt_on_bfd_peer(struct punt *p, const struct msg_bfd_peer *m)
{
	uint64_t seed = seed_of(p->fib->seed, m->vrf);

	peers_learn(PEER_BFD, peer_addr_key(m->addr.octet, m->family, 0, seed), true,
		    policer_seconds(policer_ticks()));
}

static void
punt_on_port(struct punt *p, const struct msg_port *m)
{
	if (m->gone)
		tap_forget(p, m->ifidx - 1u);
	else
		tap_begin(p, m->ifidx - 1u);
	sem_post(m->done);
}

static void
punt_on_msg(struct worker *w, struct msg *m)
{
	struct punt *p = w->ctx;

	switch (m->type) {
	case MSG_RECLAIM:
		worker_reclaim(w, m);
		return;
	case MSG_NEIGH:
		punt_release_answered(p, caa_container_of(m, struct msg_neigh, m));
		break;
	case MSG_TAP:
		tap_replace(p, caa_container_of(m, struct msg_tap, m));
		break;
	case MSG_BFD_PEER:
		punt_on_bfd_peer(p, (const struct msg_bfd_peer *)m);
		break;
	case MSG_LINK:
		punt_on_link(p, caa_container_of(m, struct msg_link, m));
		break;
	case MSG_PORT:
		punt_on_port(p, (struct msg_port *)m);
		break;
	default:
		break;
	}
	msg_free(m);
}

static void
punt_on_tick(struct ev_loop *loop, ev_timer *timer, int revents)
{
	struct punt *p = timer->data;

	punt_pmtu_expire(p);
	if (p->n_queues > 0)
		punt_release_expired(p, monotonic_s());
}

static int
punt_init(struct worker *w)
{
	struct punt *p = w->ctx;

	/*
	 * An lcore id gives this thread an mbuf cache of its own. Without it the thread is
	 * slower.
	 */
	if (p->conf.no_lcore) /* DPDK gives none if processes share it */
		log_debug("punt: no lcore id reason=dpdk-shared");
	else if (rte_thread_register() < 0)
		log_debug("punt: no lcore id error=\"%s\"", rte_strerror(rte_errno));
	ev_timer_init(&p->tick, punt_on_tick, 1., 1.);
	p->tick.data = p;
	ev_timer_start(w->loop, &p->tick);
	return tap_start(p);
}

static void
punt_fini(struct worker *w)
{
	struct punt *p = w->ctx;

	tap_stop(p);
	ev_timer_stop(w->loop, &p->tick);
	neigh_queue_clear(p);
	if (!p->conf.no_lcore)
		rte_thread_unregister();
}

static const struct worker_ops punt_ops = {
	.name = "punt",
	.role = ROLE_PUNT,
	.init = punt_init,
	.on_msg = punt_on_msg,
	.on_round = punt_round,
	.fini = punt_fini,
};

int
punt_setup(struct worker *w, const struct punt_conf *conf)
{
	struct punt *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return -ENOMEM;
	p->conf = *conf;
	p->fib = conf->fib;
	p->count = conf->count;
	p->worker = w;
	p->tap_io = calloc(conf->n_port, sizeof(*p->tap_io));
	p->linear = malloc(LINEAR_BYTES);
	worker_init(w, &punt_ops, p);
	if (neigh_queue_begin(p) == 0 && p->tap_io != NULL && p->linear != NULL)
		return 0;
	punt_teardown(w);
	return -ENOMEM;
}

void
punt_teardown(struct worker *w)
{
	struct punt *p = w->ctx;

	if (p == NULL)
		return;
	for (unsigned int i = 0; i < 2; i++)
		if (p->conf.raw[i] >= 0)
			close(p->conf.raw[i]);
	free(p->queue);
	free(p->tap_io);
	free(p->linear);
	punt_vteps_free(&p->vteps);
	free(p);
	w->ctx = NULL;
}
