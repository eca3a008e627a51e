/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The one place where a forwarder enters the kernel: to sleep when idle. It is offline for
 * RCU meanwhile: a sleeper that stayed online would hold up every grace period.
 */
#include "base/idle.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <urcu/urcu-qsbr.h>

#include "base/clock.h"
#include "base/tsan.h"

/* About what a sleep and a wake-up cost: to spin longer is never worth more than twice. */
#define SPIN_NS 20000
/* A blind sleep is late by at most this part of the silence before it, and by BLIND_MAX. */
#define BLIND_PART   64
#define BLIND_MIN_NS 5000
#define BLIND_MAX_NS 800000
/* With descriptors for all, in case the kernel or a driver forgets one. */
#define LONG_NS 100000000
/* Descriptors that cry wolf so often in a row are not listened to, for that long. */
#define IN_VAIN_MAX 16
#define DEAF_NS     1000000

int
idle_open(struct idle *idle, bool never_sleep, uint64_t *n_sleeps)
{
	int rc;

	*idle = (struct idle){
		.never_sleep = never_sleep, .n_sleeps = n_sleeps, .epoll_fd = -1};
	idle->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (idle->wake_fd >= 0)
		idle->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	rc = idle->epoll_fd < 0 ? -errno : idle_watch(idle, idle->wake_fd, IDLE_EDGE);
	if (rc < 0)
		idle_close(idle);
	return rc;
}

void
idle_close(struct idle *idle)
{
	if (idle->wake_fd >= 0)
		close(idle->wake_fd);
	if (idle->epoll_fd >= 0)
		close(idle->epoll_fd);
	idle->wake_fd = idle->epoll_fd = -1;
}

int
idle_watch(struct idle *idle, int fd, enum idle_kind kind)
{
	struct epoll_event e = {.events = EPOLLIN | (kind == IDLE_EDGE ? EPOLLET : 0u),
				.data.fd = fd};

	if (fd >= 0 && epoll_ctl(idle->epoll_fd, EPOLL_CTL_ADD, fd, &e) == 0)
		return 0;
	atomic_fetch_add_explicit(&idle->n_blind, 1, memory_order_relaxed);
	return fd < 0 ? 0 : -errno;
}

void
idle_unwatch(struct idle *idle, int fd)
{
	if (fd < 0 || epoll_ctl(idle->epoll_fd, EPOLL_CTL_DEL, fd, NULL) < 0)
		atomic_fetch_sub_explicit(&idle->n_blind, 1, memory_order_relaxed);
}

void
idle_begin(void)
{
	prctl(PR_SET_TIMERSLACK, 1000);
}

/* How long to sleep when nothing wakes us, after so much silence. */
static uint64_t
sleep_ns(struct idle *idle, uint64_t silence_ns)
{
	uint64_t ns = silence_ns / BLIND_PART;

	if (atomic_load_explicit(&idle->n_blind, memory_order_relaxed) == 0)
		return LONG_NS;
	return ns < BLIND_MIN_NS ? BLIND_MIN_NS : ns < BLIND_MAX_NS ? ns : BLIND_MAX_NS;
}

/* Why a sleep ended. */
enum end { END_TIME, END_TOLD, END_QUEUE };

static enum end
idle_block(struct idle *idle, uint64_t ns)
{
	struct timespec t = {.tv_sec = 0, .tv_nsec = (long)ns};
	struct epoll_event e[8];
	enum end end = END_TIME;
	int n = epoll_pwait2(idle->epoll_fd, e, 8, &t, NULL);

	if (n < 0 &&
	    errno != EINTR) /* Linux before 5.11, or a filter that does not know it */
		n = epoll_wait(idle->epoll_fd, e, 8, (int)((ns + 999999) / 1000000));
	for (int i = 0; i < n; i++) {
		int error;
		socklen_t len = sizeof(error);

		if (e[i].data.fd != idle->wake_fd)
			end = END_QUEUE;
		else if (end == END_TIME)
			end = END_TOLD;
		/* An interface went down: said again and again until it is taken. */
		if ((e[i].events & EPOLLERR) != 0)
			getsockopt(e[i].data.fd, SOL_SOCKET, SO_ERROR, &error, &len);
	}
	return end;
}

static void
idle_arm(struct idle *idle, bool on)
{
	idle->armed = on;
	if (idle->arm != NULL)
		idle->arm(idle->ctx, on);
	atomic_store_explicit(&idle->asleep, on, memory_order_relaxed);
	/* Who brought something before he could see this: the next look finds it. */
	if (on)
		cmm_smp_mb();
}

void
idle_nothing(struct idle *idle)
{
	enum end end = END_TIME;
	uint64_t now;

	if (idle->never_sleep)
		return;
	now = monotonic_ns();
	if (idle->silent_ns == 0)
		idle->silent_ns = now;
	if (now - idle->silent_ns < SPIN_NS)
		return;
	if (!idle->armed) {
		idle_arm(idle, true); /* and look once more */
		return;
	}
	__atomic_store_n(idle->n_sleeps, *idle->n_sleeps + 1, __ATOMIC_RELAXED);
	GRACE_LET_GO();
	urcu_qsbr_thread_offline();
	if (idle->in_vain > IN_VAIN_MAX) {
		struct timespec t = {.tv_nsec = DEAF_NS};

		nanosleep(&t, NULL);
		idle->in_vain = 0;
	} else {
		end = idle_block(idle, sleep_ns(idle, now - idle->silent_ns));
		idle->in_vain += end == END_QUEUE;
	}
	urcu_qsbr_thread_online();
	/* When only time has passed, the next look is the last one before the next sleep. */
	if (end != END_TIME)
		idle_arm(idle, false);
}

void
idle_something(struct idle *idle)
{
	if (idle->armed)
		idle_arm(idle, false);
	idle->silent_ns = 0;
	idle->in_vain = 0;
}

void
idle_wake_sleeper(struct idle *idle)
{
	static const uint64_t one = 1;

	/* Of many who wake it one does. */
	if (atomic_exchange_explicit(&idle->asleep, false, memory_order_relaxed) &&
	    write(idle->wake_fd, &one, sizeof(one)) < 0) {
		/* Only a counter that is full can refuse, and then it wakes as well. */
	}
}
