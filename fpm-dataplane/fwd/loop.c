/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop: the loop of a forwarder. A round takes the frames that the kernel and the punt
 * thread injected and the BFD packets that are due, receives from each queue, and flushes
 * the transmit buffers. Some rounds end with a quiescent state. Pointers under RCU that are
 * kept for later rounds are then cleared, or become invalid because fwd.outer_epoch
 * changes.
 */
#include "fwd/fwd.h"

#include <pthread.h>

#include <rte_ethdev.h>
#include <urcu/urcu-qsbr.h>

#include "base/sched.h"
#include "base/tsan.h"
#include "base/worker.h"
#include "fib/hook_list.h"
#include "fwd/bfd.h"
#include "fwd/cpu.h"
#include "fwd/cycles.h"
#include "fwd/decap_fast.h"
#include "fwd/fast.h"
#include "fwd/few.h"
#include "fwd/inner.h"
#include "fwd/sample.h"
#include "fwd/tx.h"
#include "fwd/vlan.h"
#include "fwd/walk.h"
#include "fwd/watch.h"
#include "port/rxq.h"

/*
 * Rounds with packets between two looks at the clock for BFD. At each look fwd.interval
 * grows by one. A round with a full burst takes some microseconds.
 */
#define LOOK_EVERY 4
/*
 * Rounds with packets between two quiescent states. The paths of outer packets are looked
 * up again after each quiescent state: with 4 rounds, packets into tunnels cost 8 % more.
 */
#define QUIESCE_EVERY 32

static void
cycles_mark_stage(struct burst *b, enum watch_stage stage)
{
	static const uint8_t of[N_STAGE] = {
		[STAGE_ADMIT] = CYCLES_PARSE,     [STAGE_PARSE] = CYCLES_PARSE,
		[STAGE_LOOKUP] = CYCLES_LOOKUP,   [STAGE_ADJACENCY] = CYCLES_ADJACENCY,
		[STAGE_REWRITE] = CYCLES_REWRITE, [STAGE_FILTER] = CYCLES_ADJACENCY,
		[STAGE_URPF] = CYCLES_LOOKUP,     [STAGE_HOOK] = CYCLES_HOOK,
	};

	cycles_mark(b->fwd, of[stage]);
}

/* Dispatch a burst, which has no packets if all of them were decapsulated. */
static inline void
burst_dispatch(struct burst *b)
{
	if (b->n > 0)
		fwd_dispatch_all(b);
	else
		fwd_tunnels_walk(b->fwd);
}

/* Pass a burst through the stages in a timed round. */
static void
burst_walk_timed(struct burst *b)
{
	cycles_mark(b->fwd, CYCLES_RECEIVE);
	counter_add(&b->fwd->count->timed_packets, b->n);
	counter_add(&b->fwd->count->timed_bursts, 1);
	if (fwd_decap_may_be_fast(b)) {
		fwd_decap_fast(b);
		cycles_mark(b->fwd, CYCLES_PARSE);
	}
	if (b->n > 0)
		fwd_walk(b, cycles_mark_stage);
	burst_dispatch(b);
	cycles_mark(b->fwd, CYCLES_DISPATCH);
}

/* Pass b->n packets of one interface through the stages. */
static void
burst_walk(struct burst *b)
{
	b->segments = false;
	if (b->n <= FWD_FEW_MAX && fwd_few(b))
		return;
	if (b->fwd->timed) {
		burst_walk_timed(b);
		return;
	}
	if (fwd_decap_may_be_fast(b))
		fwd_decap_fast(b);
	if (b->n > 0 && fwd_watched(b->fwd))
		fwd_walk_watched(b);
	else if (b->n > 0)
		fwd_walk(b, NULL);
	burst_dispatch(b);
}

/* burst_walk() for a part of a received burst that has samples. */
static __attribute__((noinline)) void
burst_walk_sampled(struct burst *b)
{
	if (fwd_watched(b->fwd))
		fwd_walk_watched(b);
	else
		fwd_walk(b, NULL);
	fwd_sample_note(b);
	fwd_dispatch_all(b);
}

/*
 * Pass fast-path packets of interfaces that are alike through the stages, as the
 * walk_fast() of fwd_split().
 */
static uint64_t
burst_walk_fast(struct burst *b)
{
	bool timed = b->fwd->timed;
	uint64_t left;

	if (timed) {
		cycles_mark(b->fwd, CYCLES_RECEIVE);
		fwd_walk_fast(b, cycles_mark_stage);
	} else {
		fwd_walk_fast(b, NULL);
	}
	left = fwd_dispatch_fast(b);
	if (timed) {
		cycles_mark(b->fwd, CYCLES_DISPATCH);
		counter_add(&b->fwd->count->timed_packets, b->n);
		counter_add(&b->fwd->count->timed_bursts, 1);
	}
	return left;
}

/* Handle the b->n packets of a received burst, or of a part of it. */
static void
burst_handle(struct fwd *f, const struct rxq *q, struct burst *b)
{
	struct if_counters *c = &f->count->port[q->ifidx];
	bool vlans = fib_vlans(f->fib, q->ifidx) != NULL, sampled;
	uint16_t of = q->ifidx;

	b->fwd = f;
	b->now = 0;
	b->ifidx = q->ifidx;
	sampled = fwd_sample(b);
	b->rx_cksum = q->rx_cksum;
	b->vrf_counted = false;
	if (vlans)
		of = fwd_look(b);
	else
		burst_look(b);
	counter_add(&c->rx_packets, b->n);
	counter_add(&c->rx_bytes, b->bytes);
	counter_add(&f->count->bursts, 1);
	if (vlans)
		fwd_split(b, of, sampled ? burst_walk_sampled : burst_walk,
			  sampled ? NULL : burst_walk_fast);
	else if (sampled)
		burst_walk_sampled(b);
	else
		burst_walk(b);
}

/*
 * Receive a burst of more than BURST_MAX packets and handle it in parts. Returns the number
 * of packets received.
 */
static unsigned int
queue_poll_long(struct fwd *f, const struct rxq *q, struct burst *b)
{
	unsigned int n = rte_eth_rx_burst(q->port_id, q->queue, f->rx, f->conf->rx_burst);

	for (unsigned int from = 0; from < n; from += BURST_MAX) {
		b->n = (uint16_t)RTE_MIN(n - from, (unsigned int)BURST_MAX);
		memcpy(b->m, f->rx + from, b->n * sizeof(b->m[0]));
		burst_handle(f, q, b);
	}
	return n;
}

static unsigned int
queue_poll(struct fwd *f, const struct rxq *q, struct burst *b)
{
	uint16_t max = f->conf->rx_burst, n;

	/*
	 * A bond sends its LACP frames within a transmit call, even within a call without
	 * packets.
	 */
	if (q->lacp)
		rte_eth_tx_burst(q->port_id, (uint16_t)f->conf->index, NULL, 0);
	if (f->timed)
		f->mark_tsc = rte_rdtsc();
	if (max > BURST_MAX)
		return queue_poll_long(f, q, b);
	n = rte_eth_rx_burst(q->port_id, q->queue, b->m, max);
	b->n = n;
	if (n > 0)
		burst_handle(f, q, b); /* changes b->n, see fwd_decap_fast() */
	return n;
}

/* Send the frames that the kernel and the punt thread injected. They are complete. */
static unsigned int
inject_drain(struct fwd *f)
{
	struct rte_mbuf *m[BURST_MAX];
	unsigned int n = rte_ring_sc_dequeue_burst(f->conf->rings.inject, (void **)m,
						   BURST_MAX, NULL);

	for (unsigned int i = 0; i < n; i++) {
		uint16_t out = packet_meta(m[i])->out_ifidx;
		const struct fib_iface *iface = fib_iface(f->fib, out);

		/* Without a TAP the port is being removed, or is gone already. */
		if (iface != NULL && iface->ifindex != 0) {
			fwd_tx(f, out, m[i]);
		} else {
			rte_pktmbuf_free(m[i]);
			counter_add(&f->count->reason[DROP_egress_down], 1);
		}
	}
	return n;
}

int
fwd_main(void *arg)
{
	const struct fwd_conf *conf = arg;
	struct fwd state = {.conf = conf,
			    .fib = conf->fib,
			    .tries = conf->tries,
			    .count = conf->count,
			    .tx_burst = conf->tx_burst,
			    .adj_used = conf->fib->adj_used,
			    /* Start far from the numbers of other forwarders. */
			    .ip_id = (uint16_t)(conf->index * 4099)},
		   *f = &state;
	struct idle *idle = &conf->serving->idle;
	struct burst b = {0};
	unsigned int busy = 0;
	bool looks = true; /* look at the clock for BFD in the next round */

	RTE_VERIFY(fwd_isa != FWD_UNCHOSEN);
	pthread_setname_np(pthread_self(), conf->count->name);
	thread_role = ROLE_FWD;
	if (conf->bfd != NULL)
		fwd_bfd_begin(f);
	idle->arm = port_rxqs_arm;
	idle->ctx = conf->serving;
	idle_begin();
	urcu_qsbr_register_thread();
	while (!atomic_load_explicit(conf->stop, memory_order_relaxed)) {
		const struct rxq_set *set = serving_set(conf->serving);
		unsigned int n;

		f->watch = FWD_BLIND ? NULL : watch_set(conf->watch);
		f->sample = FWD_BLIND ? NULL : watch_set(conf->sampler);
		if (f->sample != NULL && f->sample->epoch != f->sample_epoch)
			fwd_sample_begin(f);
		f->filter = FWD_BLIND ? NULL : fib_filter(f->fib);
		f->hooks = fib_hooks(f->fib);
		f->timed = busy % CYCLES_EVERY == 0 && !fwd_watched(f);
		/* Frames of this router first: they are at the front of the buffers. */
		fwd_tx_own(f);
		n = inject_drain(f);
		fwd_bfd_round(f, looks);
		fwd_tx_own_end(f);
		for (unsigned int i = 0; i < set->n; i++)
			n += queue_poll(f, &set->q[i], &b);
		busy += n > 0;
		fwd_tx_flush(f);
		if (f->wake_punt) {
			f->wake_punt = false;
			worker_wake(conf->punt);
		}
		if (f->wake_bfd) {
			f->wake_bfd = false;
			worker_wake(conf->bfd_worker);
		}
		looks = n == 0 || busy % LOOK_EVERY == 0;
		if (looks) {
			f->interval++;
			fwd_bfd_round_end(f);
		}
		/* A quiescent state in each round would cost 0.4 % of the packet rate. */
		if (n == 0 || busy % QUIESCE_EVERY == 0) {
			GRACE_QUIESCENT();
			f->outer_epoch++;
			f->found.ifidx = 0;
			f->found_svi = NULL;
			urcu_qsbr_quiescent_state();
		}
		counter_add(&f->count->idle_polls, n == 0);
		counter_add(&f->count->rounds, 1);
		idle_round(idle, n > 0 || f->n_tx_used > 0);
	}
	if (conf->bfd != NULL)
		fwd_bfd_end(f);
	fwd_tx_drop(f);
	GRACE_QUIESCENT();
	urcu_qsbr_unregister_thread();
	return 0;
}
