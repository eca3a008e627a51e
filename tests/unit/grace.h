/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Grace periods by hand: who links grace.c replaces liburcu's call_rcu thread, for tests
 * without a second thread, which need many grace periods or want them at a given place.
 */
#ifndef GRACE_H
#define GRACE_H

/* All that was handed to call_rcu until now is due. */
void grace_over(void);

#endif
