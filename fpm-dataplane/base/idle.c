/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The one place where a forwarder enters the kernel: to sleep when idle. It is offline for
 * RCU meanwhile: a sleeper that stayed online would hold up every grace period.
 */
#include "base/idle.h"

#include <sys/prctl.h>
#include <time.h>
#include <urcu/urcu-qsbr.h>

#define STEP_NS 5000
#define MAX_NS  200000

void
idle_init(struct idle *idle, bool never_sleep)
{
	idle->empty = 0;
	idle->never_sleep = never_sleep;
	prctl(PR_SET_TIMERSLACK, 1000);
}

void
idle_sleep(struct idle *idle)
{
	long ns = (long)(idle->empty - IDLE_SPIN) * STEP_NS;
	struct timespec t = {.tv_nsec = ns < MAX_NS ? ns : MAX_NS};

	if (idle->empty > 1000000)
		idle->empty =
			IDLE_SPIN + MAX_NS / STEP_NS; /* no wrap in a long quiet night */
	urcu_qsbr_thread_offline();
	nanosleep(&t, NULL);
	urcu_qsbr_thread_online();
}
