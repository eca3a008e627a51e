/* SPDX-License-Identifier: BSD-3-Clause */
/* filter_status: facts about the filter for metrics. */
#ifndef BASE_FILTER_STATUS_H
#define BASE_FILTER_STATUS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* W:filter  R:ui, relaxed */
struct filter_status {
	_Atomic bool configured; /* the file names a table */
	_Atomic bool in_force;   /* the kernel's present ruleset is in force */
	_Atomic uint32_t generation, rules, refusals;
	/*
	 * Monotonic time at which the thread began to read and build a ruleset. It answers
	 * no client meanwhile. 0: it does not build.
	 */
	_Atomic uint64_t busy_since_ms;
	_Atomic uint64_t logged, log_lost; /* packets of rules with `log` */
};

extern struct filter_status filter_status;

#endif
