/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * clock: steady time. All threads read the same clocks, so ages and lags can be compared
 * between threads.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Return CLOCK_MONOTONIC in nanoseconds.                                   [any thread] */
static inline uint64_t
monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Return CLOCK_MONOTONIC in milliseconds.                                  [any thread] */
static inline uint64_t
monotonic_ms(void)
{
	return monotonic_ns() / 1000000;
}

/*
 * Return CLOCK_BOOTTIME in milliseconds: comparable between processes, includes suspend.
 *                                                                             [any thread]
 */
static inline uint64_t
boottime_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Return CLOCK_MONOTONIC in seconds, for ages and rates.                   [any thread] */
static inline double
monotonic_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/*
 * Return the CPU time of the calling thread in seconds. It does not grow while the thread waits, or
 * while other threads or other virtual machines use the CPU.               [any thread]
 */
static inline double
thread_cpu_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

#endif
