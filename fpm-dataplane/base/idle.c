/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Put an idle forwarder to sleep. Apart from waking the punt thread, this is the only
 * place where a forwarder enters the kernel. It is RCU-offline while it sleeps, because a
 * sleeping online thread would block every grace period.
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

/*
 * About the cost of a sleep and a wake-up. Spinning this long costs at most twice as much
 * as the best choice.
 */
#define SPIN_NS 20000
/*
 * If a queue has no descriptor, a sleep lasts at most 1/BLIND_PART of the silence before
 * it, but at least BLIND_MIN_NS and at most BLIND_MAX_NS.
 */
#define BLIND_PART   64
#define BLIND_MIN_NS 5000
#define BLIND_MAX_NS 800000
/*
 * Longest sleep when every queue has a descriptor: bounds the delay if the kernel or a
 * driver loses an event.
 */
#define LONG_NS 100000000
/* After this many false wake-ups in a row, sleep without the descriptors for DEAF_NS. */
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

static uint64_t
ns_least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Return the longest time to sleep after `silence_ns` without packets. */
static uint64_t
idle_sleep_ns(struct idle *idle, uint64_t silence_ns)
{
	uint64_t ns = silence_ns / BLIND_PART;

	if (atomic_load_explicit(&idle->n_blind, memory_order_relaxed) == 0)
		return LONG_NS;
	return ns < BLIND_MIN_NS ? BLIND_MIN_NS : ns < BLIND_MAX_NS ? ns : BLIND_MAX_NS;
}

/* The reason for the end of a sleep. */
enum end { END_TIME, END_TOLD, END_QUEUE };

static enum end
idle_block(struct idle *idle, uint64_t ns)
{
	struct timespec t = {.tv_sec = 0, .tv_nsec = (long)ns};
	struct epoll_event e[8];
	enum end end = END_TIME;
	int n = epoll_pwait2(idle->epoll_fd, e, 8, &t, NULL);

	if (n < 0 &&
	    /* Linux before 5.11, or a seccomp filter that refuses epoll_pwait2() */
	    errno != EINTR)
		n = epoll_wait(idle->epoll_fd, e, 8, (int)((ns + 999999) / 1000000));
	for (int i = 0; i < n; i++) {
		int error;
		socklen_t len = sizeof(error);

		if (e[i].data.fd != idle->wake_fd)
			end = END_QUEUE;
		else if (end == END_TIME)
			end = END_TOLD;
		/*
		 * Clear the error of an interface that went down; epoll would report it
		 * again and again.
		 */
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
	/*
	 * A thread that adds work before it can see `asleep` does not wake the owner. The
	 * owner's next poll of the queues finds the work.
	 */
	if (on)
		cmm_smp_mb();
}

void
idle_nothing(struct idle *idle)
{
	enum end end = END_TIME;
	uint64_t now, most;

	if (idle->never_sleep)
		return;
	now = monotonic_ns();
	if (idle->silent_ns == 0)
		idle->silent_ns = now;
	if (now - idle->silent_ns < SPIN_NS)
		return;
	if (!idle->armed) {
		idle_arm(idle, true); /* then poll the queues once more */
		return;
	}
	most = idle->until == NULL ? UINT64_MAX : idle->until(idle->until_ctx);
	if (most == 0)
		return;
	__atomic_store_n(idle->n_sleeps, *idle->n_sleeps + 1, __ATOMIC_RELAXED);
	GRACE_QUIESCENT();
	urcu_qsbr_thread_offline();
	if (idle->in_vain > IN_VAIN_MAX) {
		struct timespec t = {.tv_nsec = (long)ns_least(DEAF_NS, most)};

		nanosleep(&t, NULL);
		idle->in_vain = 0;
	} else {
		end = idle_block(
			idle, ns_least(idle_sleep_ns(idle, now - idle->silent_ns), most));
		idle->in_vain += end == END_QUEUE;
	}
	urcu_qsbr_thread_online();
	/*
	 * After a timeout stay armed, because the next poll of the queues is the last poll
	 * before the next sleep.
	 */
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

	/* Only one of several waking threads writes. */
	if (atomic_exchange_explicit(&idle->asleep, false, memory_order_relaxed) &&
	    write(idle->wake_fd, &one, sizeof(one)) < 0) {
		/*
		 * Only a full counter refuses a write, and a full counter wakes the
		 * sleeper as well.
		 */
	}
}
