/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fwd: the forwarders. A thread a core: receive, walk, transmit, and nothing else. No
 * allocation, lock, log or system call in this folder (`make lint` looks); how an idle
 * forwarder waits is in base/idle.h, how it wakes the punt thread in base/worker.h.
 */
#ifndef FWD_FWD_H
#define FWD_FWD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/counters.h"
#include "port/packet.h"

struct fib;
struct worker;

#define FWD_RXQ_MAX 64

struct fwd_rxq {
	uint16_t ifidx, port_id, queue;
	bool rx_cksum; /* the port has verified IPv4 header checksums */
};

struct fwd_conf {
	struct fib *fib;
	struct worker *punt;    /* woken when its rings got something */
	struct fwd_rings rings; /* this forwarder's */
	struct counters *count; /* this forwarder's; its name names the thread */
	unsigned int index;     /* 0..: also its transmit queue on every port */
	struct fwd_rxq rxq[FWD_RXQ_MAX];
	unsigned int n_rxq;
	bool poll_always; /* never wait */
	const atomic_bool *stop;
};

/* Body of an EAL lcore; `conf` is a struct fwd_conf that outlives it. Returns 0. [fwd-n] */
int fwd_main(void *conf);

#endif
