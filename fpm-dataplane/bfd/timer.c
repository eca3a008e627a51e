/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * timer: the timers of sessions, and the descriptor that wakes the thread for the earliest
 * one. judge.c handles timers that are due.                                          [bfd]
 */
#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "bfd/impl.h"

#define LOOK_NS 100000ull /* until the next check whether the forwarders have polled */

void
timer_set(struct bfd *b, const struct session *s, enum bfd_timer t, uint64_t when)
{
	due_set(&b->due, s->number * N_TIMER + t, when);
}

uint64_t
timer_when(const struct bfd *b, const struct session *s, enum bfd_timer t)
{
	return due_when(&b->due, s->number * N_TIMER + t);
}

static void
timer_on_due(struct ev_loop *loop, ev_io *io, int revents)
{
	struct bfd *b = io->data;
	uint64_t n;

	/* Only the wake-up matters; the end of the round handles the timers. */
	(void)!read(b->timer_fd, &n, sizeof(n));
	b->armed = 0;
}

void
timers_arm(struct bfd *b)
{
	uint64_t first = due_first(&b->due), at;
	struct itimerspec t = {0};

	at = b->asking ? monotonic_ns() + LOOK_NS : first;
	if (b->lend_at < at)
		at = b->lend_at;
	if (at == DUE_NEVER || (at == b->armed && at > monotonic_ns()))
		return;
	t.it_value.tv_sec = (time_t)(at / 1000000000);
	t.it_value.tv_nsec = (long)(at % 1000000000);
	if (timerfd_settime(b->timer_fd, TFD_TIMER_ABSTIME, &t, NULL) == 0)
		b->armed = at;
}

int
timers_begin(struct bfd *b)
{
	int rc = due_init(&b->due, BFD_SESSIONS * N_TIMER);

	if (rc < 0)
		return rc;
	b->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (b->timer_fd < 0)
		return -errno;
	ev_io_init(&b->timer_io, timer_on_due, b->timer_fd, EV_READ);
	b->timer_io.data = b;
	ev_io_start(b->w->loop, &b->timer_io);
	return 0;
}

void
timers_end(struct bfd *b)
{
	if (b->timer_fd >= 0) {
		ev_io_stop(b->w->loop, &b->timer_io);
		close(b->timer_fd);
	}
	b->timer_fd = -1;
	due_free(&b->due);
}
