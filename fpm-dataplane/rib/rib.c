/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rib thread: start, messages and rounds. A message goes to the file that handles its
 * type. Each round ends with a commit of its changes, so that a single route does not wait
 * for later ones. The thread never reads a socket and never blocks. [rib]
 */
#include "rib/rib.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/kernel_event.h"
#include "base/limits.h"
#include "base/msg_manage.h"
#include "base/rule.h"
#include "rib/adj.h"
#include "rib/checkpoint.h"
#include "rib/commit.h"
#include "rib/content.h"
#include "rib/early.h"
#include "rib/encap.h"
#include "rib/feedback.h"
#include "rib/kernel.h"
#include "rib/link_change.h"
#include "rib/labels.h"
#include "rib/leg.h"
#include "rib/link.h"
#include "rib/mirror.h"
#include "rib/nexthop.h"
#include "rib/query.h"
#include "rib/reclaim.h"
#include "rib/restore.h"
#include "rib/resync.h"
#include "rib/impl.h"
#include "rib/route.h"
#include "rib/routes.h"
#include "rib/rules.h"
#include "rib/session.h"
#include "rib/slot.h"
#include "rib/stack.h"
#include "rib/sweep.h"
#include "rib/table_count.h"
#include "rib/vrf.h"
#include "rib/words.h"
#include "rib/zebra.h"

#define TICK_S  0.1 /* period of rounds while a time limit runs */
#define ALIVE_S 1.0 /* precision of the checkpoint's age */

static void
status_add(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_store_explicit(counter,
			      atomic_load_explicit(counter, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

static void
batch_event(struct rib *rib, const struct msg_fpm_batch *b)
{
	if (rib->words.due)
		words_publish(rib);
	zebra_batch(rib, b);
	if (rib->pending.oldest_rx_ms == 0)
		rib->pending.oldest_rx_ms = b->rx_ms;
	atomic_store_explicit(&fpm_status.handled_rx_ms, b->rx_ms, memory_order_relaxed);
	status_add(&fpm_status.queue_bytes_out, b->bytes);
}

static void
kernel_event(struct rib *rib, const struct msg_kernel_batch *b)
{
	if (rib->words.due)
		words_publish(rib);
	rib_kernel_batch(rib, b);
	status_add(&kernel_status.out, b->bytes);
	if (atomic_load_explicit(&kernel_status.paused, memory_order_relaxed) &&
	    kernel_queue_depth() <= KERNEL_QUEUE_RESUME_BYTES)
		worker_wake(rib->conf.rtnl);
}

/* Take new settings. They also apply to waiting times that have begun. */
static void
settings_event(struct rib *rib, const struct msg_settings *m)
{
	rib->conf.sweep_quiet_s = m->sweep_quiet_s;
	rib->conf.sweep_max_s = m->sweep_max_s;
	rib->conf.sweep_restart_s = m->sweep_restart_s;
	rib->conf.feedback = m->feedback;
	links_set_through_kernel(rib, m->through_kernel);
}

/*
 * With `done`, make the checkpoint read-only, because the successor restores it, and end
 * the session. Without `done`, the handover was cancelled: write the checkpoint again.
 * The successor's failed start does not count as an attempt to restore.
 */
static void
quiesce_event(struct rib *rib, const struct msg_quiesce *m)
{
	bool resume = m->done == NULL;

	/*
	 * Bind the last changes of zebra, which otherwise happens at the end of the round.
	 */
	if (!resume && rib->nhs.changed && rib->early.n > 0)
		early_bind(rib, EARLY_KNOWN);
	if (!resume)
		slots_bind(rib);
	if (rib->ckpt != NULL)
		rib->ckpt->quiesced = !resume;
	if (rib->ckpt != NULL && resume)
		rib->ckpt->head->attempts = 0;
	if (resume) {
		mirror_resume(rib);
		return;
	}
	session_down(rib);
	atomic_store(m->done, true);
}

static void
bfd_hop_event(struct rib *rib, const struct msg_bfd_hop *m)
{
	if (prune_event(rib, m))
		adjs_prune(rib, m);
}

void
rib_on_msg(struct rib *rib, struct msg *m)
{
	struct msg_reclaim *reclaim;

	ASSERT_ROLE(ROLE_RIB);
	switch (m->type) {
	case MSG_FPM_BATCH:
		batch_event(rib, (struct msg_fpm_batch *)m);
		break;
	case MSG_KERNEL_BATCH:
		kernel_event(rib, (struct msg_kernel_batch *)m);
		break;
	case MSG_RULES:
		rules_event(rib, (struct msg_rules *)m);
		break;
	case MSG_LINK:
		rib_link_event(rib, (struct msg_link *)m);
		sids_bind_link(rib, ((struct msg_link *)m)->ifindex);
		break;
	case MSG_VRF:
		if (((struct msg_vrf *)m)->gone)
			rules_keep_fib(rib, ((struct msg_vrf *)m)->number);
		rib_vrf_event(rib, (struct msg_vrf *)m);
		sids_bind(rib);
		break;
	case MSG_ADJ_READY:
		adj_event_ready(rib, (struct msg_adj *)m);
		break;
	case MSG_ADJ_FREED:
		adj_event_freed(rib, (struct msg_adj *)m);
		break;
	case MSG_ADJ_STATE:
		adj_event_state(rib, (struct msg_adj *)m);
		break;
	case MSG_BFD_HOP:
		bfd_hop_event(rib, (struct msg_bfd_hop *)m);
		break;
	case MSG_RECLAIM:
		reclaim = (struct msg_reclaim *)m;
		reclaim->fn(rib, reclaim->arg);
		break;
	case MSG_QUIESCE:
		quiesce_event(rib, (struct msg_quiesce *)m);
		break;
	case MSG_SETTINGS:
		settings_event(rib, (struct msg_settings *)m);
		break;
	case MSG_QUERY:
	case MSG_HELD:
		query_put(rib, (struct msg_query *)m);
		return; /* query_answer_all() answers it after the commit */
	default:
		assert(!"message not for rib");
		break;
	}
	msg_free(m);
	if (rib->pending.n_events >= RIB_COMMIT_EVENTS) {
		rib_commit(rib);
		/* rib holds no RCU-protected pointer between messages. */
		GRACE_QUIESCENT();
		urcu_qsbr_quiescent_state();
	}
}

bool
rib_round(struct rib *rib)
{
	bool more = sweep_round(rib), walks;

	more |= kernel_sweep_round(rib);
	(void)kernel_review_round(rib);

	if (rib->adjs.freed)
		legs_retry_adjs(rib);
	if (rib->vrfs.retries != NULL) {
		vrfs_retry(rib);
		sids_bind(rib);
	}
	routes_report(rib);
	rules_round(rib);
	/* A quiesced checkpoint must not change, and the walk withdraws foreign routes. */
	if (rib->resync.due && !ckpt_is_quiesced(rib->ckpt))
		more |= resync_round(rib);
	if (rib->feedback.resend_at != 0)
		more |= feedback_resend(rib);
	walks = rib->resync.due;
	rib_commit(rib);
	vrfs_check_told(rib);
	/* A quiesced checkpoint names the stacks of its next hops by their numbers. */
	if (!ckpt_is_quiesced(rib->ckpt))
		stacks_collect(rib);
	/* The commit may begin a review, or a walk. */
	return more || rib->kroutes.reviewing || (rib->resync.due && !walks);
}

static void
rib_worker_msg(struct worker *w, struct msg *m)
{
	rib_on_msg(w->ctx, m);
}

/* Return true if a route could not get memory since the start. */
static bool
rib_has_nomem(const struct rib *rib)
{
	return rib->count.route_nomem + rib->count.commit_nomem > 0;
}

static void
rib_worker_round(struct worker *w)
{
	struct rib *rib = w->ctx;
	bool more = rib_round(rib), timed;

	atomic_store_explicit(&rib->had_nomem, rib_has_nomem(rib), memory_order_relaxed);

	worker_busy(w, more);
	/* An idle watcher keeps the loop from waiting while a walk has more to do. */
	if (more)
		ev_idle_start(w->loop, &rib->more);
	else
		ev_idle_stop(w->loop, &rib->more);
	timed = rib->rules.retry_ms != 0 || rib->tables.retry_ms != 0 ||
		rib->session.vrfs_replaying || rib->resync.due || rib->pending.staged[0] ||
		rib->pending.staged[1] || rib->vrfs.staged.n > 0 ||
		rib->vrfs.retries != NULL || rib->vrfs.lack_local ||
		rib->locals.n_left > 0 || (rib->vrfs.n > 0 && !rib->vrfs.told) ||
		rib->adjs.n_asked > 0;
	if (timed && !ev_is_active(&rib->tick))
		ev_timer_again(w->loop, &rib->tick);
	else if (!timed && ev_is_active(&rib->tick))
		ev_timer_stop(w->loop, &rib->tick);
}

static void
timer_tick(struct ev_loop *loop, ev_timer *timer, int revents)
{
}

static void
rib_on_idle(struct ev_loop *loop, ev_idle *idle, int revents)
{
}

static void
timer_alive(struct ev_loop *loop, ev_timer *timer, int revents)
{
	mirror_alive(timer->data);
}

static int
rib_worker_init(struct worker *w)
{
	struct rib *rib = w->ctx;
	int rc;

	ev_init(&rib->tick, timer_tick);
	rib->tick.repeat = TICK_S;
	ev_idle_init(&rib->more, rib_on_idle);
	ev_timer_init(&rib->alive, timer_alive, ALIVE_S, ALIVE_S);
	rib->alive.data = rib;
	rc = checkpoint_begin(rib, rib->conf.checkpoint_fd);
	if (rc == 0 && rib_has_nomem(rib))
		rc = -ENOMEM;
	if (rc < 0 && rib->conf.successor)
		return rc;
	if (rib->ckpt != NULL)
		ev_timer_start(w->loop, &rib->alive);
	return 0;
}

static void
rib_worker_fini(struct worker *w)
{
	struct rib *rib = w->ctx;

	/* neigh has ended: a later reclaim must send it nothing. */
	rib->stopping = true;
	query_answer_all(rib);
	ev_timer_stop(w->loop, &rib->tick);
	ev_timer_stop(w->loop, &rib->alive);
	ev_idle_stop(w->loop, &rib->more);
	mirror_alive(rib);
}

struct rib *
rib_new(struct worker *w, const struct rib_conf *conf)
{
	struct rib *rib = calloc(1, sizeof(*rib));

	if (rib == NULL)
		return NULL;
	rib->adjs.v = calloc(1u + table_limit(conf->limits, TABLE_adjacencies),
			     sizeof(*rib->adjs.v));
	if (rib->adjs.v == NULL) {
		free(rib);
		return NULL;
	}
	rib->conf = *conf;
	rib->worker = w;
	rib->clock_ms = monotonic_ms;
	CDS_INIT_LIST_HEAD(&rib->legs.floating);
	CDS_INIT_LIST_HEAD(&rib->legs.without_adj);
	CDS_INIT_LIST_HEAD(&rib->reclaims.list);
	return rib;
}

static const struct worker_ops rib_ops = {
	.name = "rib",
	.role = ROLE_RIB,
	.init = rib_worker_init,
	.on_msg = rib_worker_msg,
	.on_round = rib_worker_round,
	.fini = rib_worker_fini,
};

int
rib_setup(struct worker *w, const struct rib_conf *conf)
{
	worker_init(w, &rib_ops, rib_new(w, conf));
	if (w->ctx == NULL)
		return -ENOMEM;
	if (conf->fib != NULL)
		rib_set_fib(w, conf->fib);
	return 0;
}

void
rib_set_fib(struct worker *w, struct fib *fib)
{
	struct rib *rib = w->ctx;

	rib->fib = fib;
	routes_init(&rib->tables.main, fib->seed);
	routes_init(&rib->tables.other, fib->seed);
	assert(fib->adj_hosts == 1 + table_limit(rib->conf.limits, TABLE_adjacencies));
	table_begin(TABLE_routes, table_limit(rib->conf.limits, TABLE_routes));
	table_begin(TABLE_nexthops, table_limit(rib->conf.limits, TABLE_nexthops));
	table_begin(TABLE_groups, table_limit(rib->conf.limits, TABLE_groups));
	table_begin(TABLE_adjacencies, fib->adj_hosts - 1);
	table_begin(TABLE_encaps, fib->encap_end - 1);
	table_begin(TABLE_end_points, table_limit(rib->conf.limits, TABLE_end_points));
	table_begin(TABLE_mtus, table_limit(rib->conf.limits, TABLE_mtus));
	table_begin(TABLE_rule_fibs, table_limit(rib->conf.limits, TABLE_rule_fibs));
	contents_init(rib);
}

int
rib_checkpoint_fd(const struct worker *w)
{
	const struct rib *rib = w->ctx;

	return rib->ckpt == NULL ? -1 : rib->ckpt->fd;
}

unsigned int
rib_checkpoint_attempts(int fd)
{
	return ckpt_attempts(fd);
}

uint64_t
rib_checkpoint_alive_ms(int fd)
{
	return ckpt_alive_ms(fd);
}

uint64_t
rib_checkpoint_routes(int fd)
{
	return ckpt_routes(fd);
}

void
rib_checkpoint_reset_attempts(int fd, unsigned int attempts)
{
	ckpt_reset_attempts(fd, attempts);
}

bool
rib_had_nomem(const struct worker *w)
{
	const struct rib *rib = w->ctx;

	return atomic_load_explicit(&rib->had_nomem, memory_order_relaxed);
}

void
rib_quiesce(struct worker *w, _Atomic bool *done)
{
	struct msg_quiesce *m = msg_new(MSG_QUIESCE, sizeof(*m));

	m->done = done;
	worker_send(w, &m->m);
}

void
rib_resume(struct worker *w)
{
	worker_send(w, msg_new(MSG_QUIESCE, sizeof(struct msg_quiesce)));
}

/* Retire hook of all tries, called by poptrie_commit(). */
void
rib_retire(void *ctx, struct poptrie *pt, struct poptrie_retired *r)
{
	reclaim_nodes(((struct worker *)ctx)->ctx, pt, r);
}

void
rib_teardown(struct worker *w)
{
	struct rib *rib = w->ctx;

	if (rib == NULL)
		return;
	rib->stopping = true;
	commit_reclaim_all(rib);
	ckpt_free(rib->ckpt);
	mirror_missed_free(rib);
	early_free(rib);
	nhs_free(rib);
	slots_free(rib);
	contents_free(rib);
	links_free(&rib->links);
	kroutes_free(&rib->kroutes);
	rules_free(rib);
	vrfs_free(rib);
	table_counts_free(rib);
	routes_free(&rib->tables.main);
	routes_free(&rib->tables.other);
	adjs_free(&rib->adjs);
	prunes_free(&rib->prunes);
	encaps_free(&rib->encaps);
	stacks_free(&rib->stacks);
	sids_free(&rib->sids);
	fifo32_free(&rib->sid_numbers.unused);
	labels_free(rib);
	free(rib->queries.v);
	rib_feedback_free(rib);
	free(rib->scratch.v);
	words_free(rib);
	free(rib);
	w->ctx = NULL;
}
