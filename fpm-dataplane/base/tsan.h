/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tsan: describe to ThreadSanitizer the order that liburcu 0.13 ensures by barriers which
 * ThreadSanitizer does not see. No code in other builds.
 *
 * A reader calls GRACE_QUIESCENT() before each quiescent state and before it goes offline.
 * A thread that has waited for a grace period, or a callback of call_rcu, calls
 * GRACE_OVER() and then may write to or free the objects that the readers had.
 */
#ifndef BASE_TSAN_H
#define BASE_TSAN_H

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#include <stdint.h>
#include <urcu/urcu-qsbr.h>
#define GRACE_RELEASE(p) __tsan_release(p)
#define GRACE_ACQUIRE(p) __tsan_acquire(p)
/* Use one address for all readers, because a grace period waits for all of them. */
#define GRACE_QUIESCENT() __tsan_release((void *)(uintptr_t)&urcu_qsbr_flavor)
#define GRACE_OVER()      __tsan_acquire((void *)(uintptr_t)&urcu_qsbr_flavor)
#else
#define GRACE_RELEASE(p)  ((void)(p))
#define GRACE_ACQUIRE(p)  ((void)(p))
#define GRACE_QUIESCENT() ((void)0)
#define GRACE_OVER()      ((void)0)
#endif

#endif
