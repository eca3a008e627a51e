/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * filter: the thread that follows nft tables of the control namespace. It reads the tables
 * after each change, builds a ruleset of its chains at the hook forward
 * (ruleset/ruleset.h), and publishes it as a whole in fib->filter. A table that it does not
 * understand changes nothing: the previous ruleset stays in force.
 */
#ifndef FILTER_FILTER_H
#define FILTER_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/worker.h"

struct fib;

struct filter_conf {
	struct fib *fib;
	const char *netns; /* the control namespace */
	/* a list (base/filter_tables.h); "": no filter, the thread only answers queries */
	const char *table;
	bool pass_on_error;      /* without a usable ruleset: pass all, else drop all */
	unsigned int n_thread;   /* threads with counters: forwarders, punt, `explain` */
	uint64_t (*ticks)(void); /* the clock of limits and of timeouts */
	double (*ticks_s)(void); /* ticks a second */
};

/* Fill `w`; worker_start() starts the thread. Returns 0 or -ENOMEM.              [main] */
int filter_setup(struct worker *w, const struct filter_conf *conf);
void filter_teardown(struct worker *w);

#endif
