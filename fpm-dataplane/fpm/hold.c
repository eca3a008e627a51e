/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Refuse one zebra (`fpmctl hold`), known by its netlink port id, until another zebra
 * connects or the hold time is over. The checkpoint stores the port id and the time, so
 * that the successor continues the hold.                                             [fpm]
 */
#include "fpm/impl.h"

/* Start the hold until fpm->hold_until_ms. Returns false if no hold is in force. */
static bool
hold_start(struct fpm *fpm)
{
	uint64_t now = boottime_ms();
	bool held = fpm->hold_pid != 0 && fpm->hold_until_ms > now &&
		    fpm->hold_until_ms - now <= (FPM_HOLD_MAX_S + 1) * 1000ull;

	if (held) {
		ev_timer_set(&fpm->hold, (double)(fpm->hold_until_ms - now) / 1000, 0.);
		ev_timer_start(fpm->w->loop, &fpm->hold);
		log_info("fpm: hold started nl_pid=%u seconds=%llu", fpm->hold_pid,
			 (unsigned long long)(fpm->hold_until_ms - now + 999) / 1000);
	}
	atomic_store_explicit(&fpm_status.held, held, memory_order_relaxed);
	return held;
}

/*
 * At the first start of this thread, take zebra's netlink port id and the hold from the
 * predecessor.
 */
static void
hold_inherit(struct fpm *fpm)
{
	uint32_t pid = atomic_load_explicit(&fpm_status.old_nl_pid, memory_order_relaxed);

	if (atomic_load_explicit(&fpm_status.nl_pid, memory_order_relaxed) != 0)
		return;
	atomic_store_explicit(&fpm_status.nl_pid, pid, memory_order_relaxed);
	fpm->hold_pid = pid;
	fpm->hold_until_ms = 1000ull * atomic_load_explicit(&fpm_status.old_held_until_s,
							    memory_order_relaxed);
}

void
fpm_hold_set(struct fpm *fpm, unsigned int seconds)
{
	if (seconds == 0 && !ev_is_active(&fpm->hold))
		return;
	ev_timer_stop(fpm->w->loop, &fpm->hold);
	fpm->hold_until_ms = seconds == 0 ? 0 : boottime_ms() + seconds * 1000ull;
	/* Store it in the checkpoint at once: a successor may start at any time. */
	queue_put_zebra(&fpm->queue, fpm->hold_pid,
			(uint32_t)((fpm->hold_until_ms + 999) / 1000));
	(void)queue_flush(&fpm->queue);
	if (!hold_start(fpm))
		log_info("fpm: hold ended");
}

static void
hold_on_end(struct ev_loop *loop, ev_timer *timer, int revents)
{
	struct fpm *fpm = timer->data;

	/* libev has stopped the timer. */
	atomic_store_explicit(&fpm_status.held, 0, memory_order_relaxed);
	log_warn("fpm: hold expired reason=no-other-zebra nl_pid=%u", fpm->hold_pid);
}

bool
fpm_hold_select(struct fpm *fpm)
{
	uint32_t last = atomic_load_explicit(&fpm_status.nl_pid, memory_order_relaxed);

	if (!ev_is_active(&fpm->hold))
		fpm->hold_pid = fpm->decoded.nl_pid != 0 ? fpm->decoded.nl_pid : last;
	return fpm->hold_pid != 0;
}

void
fpm_hold_begin(struct fpm *fpm)
{
	ev_init(&fpm->hold, hold_on_end);
	fpm->hold.data = fpm;
	hold_inherit(fpm);
	hold_start(fpm);
}

void
fpm_hold_end(struct fpm *fpm)
{
	ev_timer_stop(fpm->w->loop, &fpm->hold);
}
