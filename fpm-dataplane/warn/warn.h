/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * warn: the thread that finds configuration of the kernel in the control namespace that a
 * Linux router obeys and that the forwarders do not: packet filters, NAT, traffic control,
 * sysctls. It has the list of `show warnings`, logs each change of it, and counts for the
 * metrics (base/warning.h). Its reads may wait for locks of the kernel; no other thread waits
 * for it.
 */
#ifndef WARN_WARN_H
#define WARN_WARN_H

#include "base/worker.h"

struct fib;

struct warn_conf {
	struct fib *fib; /* has the devices of the kernel that are ports and VLANs */
	struct worker *rib, *neigh; /* receive MSG_QUERY, answer with MSG_REPLY */
	const char *netns;          /* the control namespace */
	const char
		*filter; /* family and name of the table that the filter obeys; "": none */
	bool rp_filter_ignored; /* the forwarders do not obey rp_filter */
};

/* Set up the thread, as rib_setup() does. Returns 0 or -ENOMEM.                   [main] */
int warn_setup(struct worker *w, const struct warn_conf *conf);
void warn_teardown(struct worker *w);

#endif
