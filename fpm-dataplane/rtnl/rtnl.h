/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rtnl: the thread that reads the kernel's routing tables by rtnetlink. It sends rib the
 * routes and next-hop objects of the control namespace: all at the start, then each change
 * within the same millisecond. After lost events it reads everything again. It never waits
 * for another thread.
 */
#ifndef RTNL_RTNL_H
#define RTNL_RTNL_H

#include "base/kernel_event.h"
#include "base/worker.h"

struct rtnl_conf {
	struct worker *rib;    /* receives MSG_KERNEL_BATCH */
	const char *netns;     /* the control namespace */
	enum routes_from from; /* which routes are passed on */
};

/*
 * Fill `w`. The init of the thread opens the sockets, reads the tables whose routes must be
 * in force when forwarding begins, and sends them. worker_start() returns its -errno.
 * Returns 0 or -ENOMEM. [main]
 */
int rtnl_setup(struct worker *w, const struct rtnl_conf *conf);
void rtnl_teardown(struct worker *w);

#endif
