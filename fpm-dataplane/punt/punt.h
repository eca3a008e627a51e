/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * punt: the thread for all packets that need more than forwarding. It moves frames between
 * TAPs and ports, sends ICMP errors, fragments packets, and queues packets that wait for a
 * neighbor. Forwarders give it packets through bounded rings.
 */
#ifndef PUNT_PUNT_H
#define PUNT_PUNT_H

#include "base/worker.h"
#include "port/packet_meta.h"

struct fib;
struct port;
struct rte_mempool;
struct table_limits;
struct watch;
struct watch_ring;

struct punt_conf {
	struct fib *fib;
	struct worker *neigh; /* receives MSG_GLEAN */
	struct port *port;    /* array of slots; punt owns the TAPs from the start on */
	unsigned int n_port;
	struct fwd_rings *rings; /* array, one per forwarder */
	unsigned int n_fwd;
	bool bfd_elsewhere; /* thread bfd takes the packets of CLASS_bfd */
	bool no_lcore;      /* processes share DPDK, which has no lcore id for punt */
	struct rte_mempool *pool;
	const struct table_limits *limits; /* limits of the tables; NULL: the defaults */
	struct counters *count;
	const struct watch *watch;
	struct watch_ring *watch_ring; /* punt's own */
	/* Raw sockets in the control namespace: IPv4, IPv6; < 0: none. punt closes them. */
	int raw[2];
};

/* Set up the thread, as rib_setup() does.                                         [main] */
int punt_setup(struct worker *w, const struct punt_conf *conf);
void punt_teardown(struct worker *w);

#endif
