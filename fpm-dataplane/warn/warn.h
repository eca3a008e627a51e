/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * warn: the thread that finds configuration of the kernel in the control namespace that a
 * Linux router obeys and that the forwarders do not obey: packet filters, NAT, traffic
 * control, sysctls. The thread keeps the list of `show warnings`, logs each change of the
 * list, and counts the warnings for the metrics (base/warning.h). Its reads may wait for
 * locks of the kernel. No other thread waits for this thread.
 */
#ifndef WARN_WARN_H
#define WARN_WARN_H

#include "base/worker.h"

struct fib;

struct warn_conf {
	struct fib *fib;            /* has the interfaces that the forwarders serve */
	struct worker *rib, *neigh; /* receive MSG_QUERY, answer with MSG_REPLY */
	const char *netns;          /* the control namespace */
	/*
	 * List of the nft tables that the filter obeys, see base/filter_tables.h; "": none.
	 */
	const char *filter;
	bool rp_filter_ignored; /* the forwarders do not obey rp_filter */
};

/*
 * Fill `w`; worker_start() starts the thread. The FIB and the texts in `conf` must outlive
 * the thread. Returns 0 or -ENOMEM.                                               [main]
 */
int warn_setup(struct worker *w, const struct warn_conf *conf);
void warn_teardown(struct worker *w);

#endif
