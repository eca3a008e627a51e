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
struct fib_copy;
struct serving;
struct watch;
struct watch_record;
struct watch_ring;
struct worker;

#define FWD_BURST_MAX 256

struct fwd_conf {
	struct fib *fib;
	const struct fib_copy *tries; /* of its NUMA node, of fib's */
	struct worker *punt;          /* woken when its rings got something */
	struct fwd_rings rings;       /* this forwarder's */
	struct counters *count;       /* this forwarder's; its name names the thread */
	const struct watch *watch;
	struct watch_ring *watch_ring; /* this forwarder's */
	unsigned int index;            /* 0..: also its transmit queue on every port */
	uint16_t rx_burst, tx_burst;   /* packets a call of a port, 1 to FWD_BURST_MAX */
	struct serving *serving;       /* this forwarder's queues, and how it waits */
	const atomic_bool *stop;       /* to be followed by idle_wake() */
};

/*
 * Choose the forwarders' code for this CPU, with AVX-512 or without. Before fwd_main() and
 * fwd_explain().                                                                  [main]
 */
void fwd_cpu_init(void);

/* Body of an EAL lcore; `conf` is a struct fwd_conf that outlives it. Returns 0. [fwd-n] */
int fwd_main(void *conf);

/*
 * Walk a frame that was not received as if it had come in by interface `ifidx`: the stages
 * that every packet takes, and their verdict. Sends nothing, counts nothing, marks no
 * neighbor as used.                                  [one thread at a time, RCU reader]
 *
 * frame    `n` octets of it, network order; zeros follow up to `frame_bytes` (`n` to
 *          65535).
 * rec      out: what fwd_walk_noted() sets down, and up to WATCH_SNAP_MAX octets of it.
 */
void fwd_explain(struct fib *fib, uint16_t ifidx, const uint8_t *frame, uint16_t n,
		 uint32_t frame_bytes, struct watch_record *rec);

#endif
