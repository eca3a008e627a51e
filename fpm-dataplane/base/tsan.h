/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ThreadSanitizer does not see the barriers inside liburcu 0.13: it is told what they order.
 * Nothing in any other build.
 */
#ifndef BASE_TSAN_H
#define BASE_TSAN_H

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#define GRACE_RELEASE(p) __tsan_release(p)
#define GRACE_ACQUIRE(p) __tsan_acquire(p)
#else
#define GRACE_RELEASE(p) ((void)(p))
#define GRACE_ACQUIRE(p) ((void)(p))
#endif

#endif
