/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ThreadSanitizer does not see the barriers inside liburcu 0.13: it is told what they order.
 * Nothing in any other build.
 *
 * A reader says GRACE_LET_GO() before each quiescent state, and before it goes offline; who has
 * waited for a grace period says GRACE_OVER() behind it, or in what call_rcu calls, and then may
 * write to, or free, what they had.
 */
#ifndef BASE_TSAN_H
#define BASE_TSAN_H

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#include <stdint.h>
#include <urcu/urcu-qsbr.h>
#define GRACE_RELEASE(p) __tsan_release(p)
#define GRACE_ACQUIRE(p) __tsan_acquire(p)
/* One address for all: a grace period waits for all readers. */
#define GRACE_LET_GO() __tsan_release((void *)(uintptr_t)&urcu_qsbr_flavor)
#define GRACE_OVER()   __tsan_acquire((void *)(uintptr_t)&urcu_qsbr_flavor)
#else
#define GRACE_RELEASE(p) ((void)(p))
#define GRACE_ACQUIRE(p) ((void)(p))
#define GRACE_LET_GO()   ((void)0)
#define GRACE_OVER()     ((void)0)
#endif

#endif
