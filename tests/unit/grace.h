/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Grace periods that the test ends. A program that links grace.c has no call_rcu thread of
 * liburcu. This is for tests with one thread that need many grace periods, or that must
 * know when a grace period ends.
 */
#ifndef GRACE_H
#define GRACE_H

/* Run all callbacks that call_rcu has got so far. */
void grace_over(void);

#endif
