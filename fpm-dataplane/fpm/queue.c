/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collect events into batches for rib, and account for the octets that rib has not handled.
 * fpm's thread only.
 *
 * Mailboxes have no limit, so the octets that rib has not handled yet are counted here. At
 * the limit the session ends, because only a reconnect makes zebra wait and lose nothing:
 * it connects again and replays. This file never waits for rib, and never drops an event of
 * a session that continues.
 */
#include <errno.h>
#include <string.h>

#include "fpm/impl.h"

/*
 * Size of the smallest message that becomes an event: nlmsghdr and rtmsg of a default
 * route.
 */
#define EVENT_WIRE_BYTES 28u

bool
queue_over_limit(const struct fpm_queue *q)
{
	return queue_depth() > q->limit_bytes;
}

bool
queue_over_half(const struct fpm_queue *q)
{
	return queue_depth() > q->limit_bytes / 2;
}

/* Free all events except events of sessions, because memory is exhausted. */
static void
queue_keep_session_events(struct fpm_queue *q)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < q->n; i++) {
		if (q->ev[i].kind <= FPM_ZEBRA)
			q->ev[kept++] = q->ev[i];
		else
			fpm_event_clear(&q->ev[i]);
	}
	q->n = kept;
	q->hops_bytes = 0;
}

/*
 * Log a warning once. Log the next warning only after the queue was below half of the
 * limit.
 */
static void
queue_warn(struct fpm_queue *q, uint64_t depth)
{
	unsigned int missed;

	if (depth <= q->limit_bytes / 2)
		q->warned = false;
	if (q->warned || depth <= queue_warn_bytes(q->limit_bytes))
		return;
	q->warned = true;
	if (log_allowed(&q->warn_log, &missed))
		log_warn("fpm: queue near its limit bytes=%llu limit_bytes=%llu "
			 "missed=%u",
			 (unsigned long long)depth, (unsigned long long)q->limit_bytes,
			 missed);
}

static void
queue_account(struct fpm_queue *q, const struct msg_fpm_batch *batch)
{
	uint64_t depth = queue_depth();

	if (depth == 0)
		atomic_store_explicit(&fpm_status.queue_since_ms, batch->rx_ms,
				      memory_order_relaxed);
	status_add(&fpm_status.queue_bytes_in, batch->bytes);
	depth += batch->bytes;
	if (depth > status_get(&fpm_status.queue_high_bytes))
		atomic_store_explicit(&fpm_status.queue_high_bytes, depth,
				      memory_order_relaxed);
	queue_warn(q, depth);
}

/* Move the hops of all events of the queue into the batch, after its events. */
static void
queue_move_hops(struct fpm_queue *q, struct msg_fpm_batch *batch)
{
	struct fpm_hop *at = (struct fpm_hop *)&batch->ev[q->n];

	for (unsigned int i = 0; i < q->n; i++) {
		if (q->ev[i].hops == NULL)
			continue;
		memcpy(at, q->ev[i].hops, q->ev[i].n_hops * sizeof(*at));
		free(q->ev[i].hops);
		batch->ev[i].hops = at;
		at += q->ev[i].n_hops;
	}
	batch->holds_hops = true;
}

/*
 * Send the events and their hops to rib in one allocation. An allocation for the hops of
 * each event would cost rib time to free, and would fragment the heap of this thread, so
 * that no memory returns to the kernel.
 */
int
queue_flush(struct fpm_queue *q)
{
	size_t events_bytes = q->n * sizeof(q->ev[0]);
	size_t bytes = offsetof(struct msg_fpm_batch, ev) + events_bytes + q->hops_bytes;
	struct msg_fpm_batch *batch;

	ASSERT_ROLE(ROLE_FPM);
	if (q->n == 0)
		return 0;
	/* Not msg_new(): the size varies, and a failed allocation must not abort. */
	batch = malloc(bytes);
	if (batch == NULL) {
		queue_keep_session_events(q);
		return -ENOMEM;
	}
	batch->m.type = MSG_FPM_BATCH;
	batch->n = q->n;
	batch->bytes = (uint32_t)bytes;
	batch->rx_ms = monotonic_ms();
	memcpy(batch->ev, q->ev, events_bytes);
	queue_move_hops(q, batch);
	q->n = 0;
	q->hops_bytes = 0;
	queue_account(q, batch);
	worker_send(q->rib, &batch->m);
	return 0;
}

int
queue_begin_frame(struct fpm_queue *q, size_t len)
{
	/* + 1: FPM_SESSION_UP may precede the events of the frame. */
	if (q->n + len / EVENT_WIRE_BYTES + 1 > FPM_BATCH_MAX)
		return queue_flush(q);
	return 0;
}

int
queue_put(struct fpm_queue *q, const struct fpm_event *ev)
{
	/*
	 * A frame with more events than a batch holds is split; zebra sends no such frame.
	 * A delete never takes the last entry of a batch, so that it stays together with
	 * the next event, which may add the same prefix again.
	 */
	unsigned int room = ev->kind == FPM_ROUTE_DEL ? 2 : 1;

	if (q->n + room > FPM_BATCH_MAX && queue_flush(q) < 0) {
		free(ev->hops);
		return -ENOMEM;
	}
	q->ev[q->n++] = *ev;
	q->hops_bytes += ev->n_hops * (uint32_t)sizeof(struct fpm_hop);
	return 0;
}

static void
queue_put_or_abort(struct fpm_queue *q, const struct fpm_event *ev)
{
	if (q->n == FPM_BATCH_MAX && queue_flush(q) < 0 && q->n == FPM_BATCH_MAX)
		abort(); /* 64 sessions wait and no memory is left: give up */
	q->ev[q->n++] = *ev;
}

void
queue_put_session(struct fpm_queue *q, enum fpm_event_kind kind, uint32_t gen,
		  uint32_t nl_pid)
{
	struct fpm_event ev = {.kind = (uint8_t)kind};

	ev.session.gen = gen;
	ev.session.nl_pid = nl_pid;
	queue_put_or_abort(q, &ev);
}

void
queue_put_zebra(struct fpm_queue *q, uint32_t nl_pid, uint32_t held_until_s)
{
	struct fpm_event ev = {.kind = FPM_ZEBRA};

	ev.session.nl_pid = nl_pid;
	ev.session.held_until_s = held_until_s;
	queue_put_or_abort(q, &ev);
}

void
queue_drop(struct fpm_queue *q)
{
	for (unsigned int i = 0; i < q->n; i++)
		fpm_event_clear(&q->ev[i]);
	q->n = 0;
	q->hops_bytes = 0;
}
