/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * punt: everything complex. TAP to port and port to TAP, ICMP errors, fragments, packets
 * that wait for a neighbor. One thread; forwarders hand it packets through bounded rings.
 */
#ifndef PUNT_PUNT_H
#define PUNT_PUNT_H

#include "base/worker.h"
#include "port/packet.h"

struct fib;
struct port;
struct rte_mempool;
struct table_limits;
struct watch;
struct watch_ring;

struct punt_conf {
	struct fib *fib;
	struct worker *neigh; /* MSG_GLEAN */
	struct port *port;    /* array of slots; the TAPs are ours from start on */
	unsigned int n_port;
	struct fwd_rings *rings; /* array, one a forwarder */
	unsigned int n_fwd;
	bool no_lcore; /* DPDK is shared by processes: it has no lcore id for us */
	struct rte_mempool *pool;
	const struct table_limits *limits; /* of tables; NULL: the usual */
	struct counters *count;
	const struct watch *watch;
	struct watch_ring *watch_ring; /* ours */
};

/* As rib_setup().                                                                [main] */
int punt_setup(struct worker *w, const struct punt_conf *conf);
void punt_teardown(struct worker *w);

#endif
