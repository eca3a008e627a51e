/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fwd: the forwarders. A forwarder is one thread on one core: it receives, forwards and
 * transmits packets, and does nothing else. Code in this folder makes no allocation, lock,
 * log or system call; `make lint` checks it. base/idle.h describes how an idle forwarder
 * waits, base/worker.h how it wakes the punt thread.
 */
#ifndef FWD_FWD_H
#define FWD_FWD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/instructions.h"
#include "base/counters.h"
#include "port/packet_meta.h"

struct bfd_pace;
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
	const struct fib_copy *tries; /* tries of `fib`; the copy on this NUMA node */
	struct worker *punt;          /* woken after its rings got a packet */
	/* thread bfd, woken after it got a packet; unused if `bfd` is NULL */
	struct worker *bfd_worker;
	struct bfd_pace *bfd;   /* this forwarder's sessions; NULL: bfdd runs BFD itself */
	struct fwd_rings rings; /* this forwarder's */
	struct counters *count; /* this forwarder's; count->name is the thread's name */
	const struct watch *watch;
	struct watch_ring *watch_ring; /* this forwarder's */
	const struct watch *sampler;   /* the watch of sFlow */
	struct watch_ring *sample_ring;
	unsigned int index;          /* from 0; also the transmit queue on every port */
	uint16_t rx_burst, tx_burst; /* packets per call to a port, 1 to FWD_BURST_MAX */
	struct serving *serving;     /* this forwarder's queues, and its idle state */
	const atomic_bool *stop; /* a thread that sets it calls idle_wake() afterwards */
};

/*
 * Choose the code of the forwarders and of tries that are created later: it uses the widest
 * instructions of this CPU that are not wider than `most`. Returns 0, or -ENOTSUP if the
 * CPU lacks them. Call it before fwd_main() and fwd_explain().                    [main]
 */
int fwd_cpu_choose(enum instructions most);
/*
 * Return the instructions of the chosen code, and the best ones of this CPU. The names are
 * those of fwd_isa_name().
 */
const char *fwd_cpu_uses(void);
const char *fwd_cpu_best(void);
/*
 * Return the instructions that lookups use, and the best that lookups could use on this
 * CPU. For AVX-512, lookups need more features of the CPU than the forwarders do.
 */
const char *fwd_cpu_lookups_use(void);
const char *fwd_cpu_lookups_best(void);

/*
 * Run a forwarder as the body of an EAL lcore. `conf` is a struct fwd_conf and outlives the
 * thread. Returns 0.                                                            [fwd-n]
 */
int fwd_main(void *conf);

/*
 * Pass a frame through the stages of the forwarders as if interface `ifidx` had received
 * it, and return the verdict in `rec`. Sends nothing, counts nothing, marks no neighbor as
 * used. [one thread at a time, RCU reader]
 *
 * frame    `n` octets (up to 65535), network order; zeros follow up to `frame_bytes`.
 * rec      out: the record of fwd_walk_noted(), with up to WATCH_SNAP_MAX octets.
 */
void fwd_explain(struct fib *fib, uint16_t ifidx, const uint8_t *frame, uint16_t n,
		 uint32_t frame_bytes, struct watch_record *rec);

#endif
