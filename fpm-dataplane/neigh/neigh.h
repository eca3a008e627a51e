/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * neigh: the thread that follows the kernel's links, addresses and neighbors. It publishes
 * interfaces, adjacencies and hosts to forwarders, and reports changes to rib and punt.
 */
#ifndef NEIGH_NEIGH_H
#define NEIGH_NEIGH_H

#include "base/worker.h"

struct counters;
struct fib;
struct port;
struct table_limits;

struct neigh_conf {
	struct fib *fib;
	struct worker *rib;    /* gets MSG_LINK, MSG_VRF, MSG_ADJ_READY, _FREED, _STATE */
	struct worker *punt;   /* gets MSG_LINK, MSG_NEIGH, MSG_TAP */
	struct worker *manage; /* gets MSG_TAP */
	struct counters *count;
	const char *netns;                 /* control namespace */
	const struct table_limits *limits; /* limits of tables; NULL: defaults */
	const char *mpls_sysctls; /* folder of net.mpls.*; NULL: the one in /proc/sys */
	bool mpls_all;          /* all interfaces accept labels; the kernel is not asked */
	bool rp_filter_ignored; /* the kernel's rp_filter is not obeyed */
	struct port *port;      /* n_port slots; neigh writes `without_if` and `link` */
	unsigned int n_port;
};

/* Fill `w`. Returns 0 or -ENOMEM. [main] */
int neigh_setup(struct worker *w, const struct neigh_conf *conf);
void neigh_teardown(struct worker *w);

#endif
