/* SPDX-License-Identifier: BSD-3-Clause */
/* Ask the scheduler for short delays: see sched.h. */
#include "base/sched.h"

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLICE_NS 200000 /* Linux accepts 100,000 or more; the default is 3,000,000 */

/* struct sched_attr of sched_setattr(2), for which glibc has no declaration before 2.41. */
struct attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

void
sched_short_slice_again(void)
{
	struct attributes a = {
		.size = sizeof(a),
		.policy = SCHED_OTHER,
		.nice = getpriority(PRIO_PROCESS, 0),
		.runtime = SLICE_NS,
	};

	(void)syscall(SYS_sched_setattr, 0, &a, 0);
}

void
sched_short_slice(void)
{
	/* The operator may have chosen another policy. */
	if (sched_getscheduler(0) == SCHED_OTHER)
		sched_short_slice_again();
}

int
sched_lend(int tid)
{
	struct sched_param p = {.sched_priority = sched_get_priority_min(SCHED_RR)};
	int policy = sched_getscheduler(tid);

	if (policy < 0)
		return -errno;
	if (policy != SCHED_OTHER)
		return -EBUSY;
	return sched_setscheduler(tid, SCHED_RR, &p) == 0 ? 0 : -errno;
}

int
sched_real_time(void)
{
	struct sched_param p = {.sched_priority = sched_get_priority_min(SCHED_RR)};
	int policy = sched_getscheduler(0);

	/* The operator may have chosen a real-time policy. */
	if (policy == SCHED_FIFO || policy == SCHED_RR)
		return 0;
	return sched_setscheduler(0, SCHED_RR, &p) == 0 ? 0 : -errno;
}

bool
sched_real_time_permit(void)
{
	rlim_t least = (rlim_t)sched_get_priority_min(SCHED_RR);
	struct rlimit limit;

	if (getrlimit(RLIMIT_RTPRIO, &limit) < 0)
		return false;
	if (limit.rlim_cur >= least)
		return true;
	limit.rlim_cur = least;
	if (limit.rlim_max < least)
		limit.rlim_max = least;
	return setrlimit(RLIMIT_RTPRIO, &limit) == 0;
}
