/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * counters: one block a thread, one writer a block, read by anybody without a lock.
 *
 * Never reset: a reader that wants rates subtracts. The ui adds the blocks up.
 */
#ifndef BASE_COUNTERS_H
#define BASE_COUNTERS_H

#include <stdalign.h>
#include <stdint.h>

#include "base/policer.h"

/*
 * Numbers of interfaces: 1 to PORT_MAX - 1 are ports, from PORT_MAX on VLANs on a port; 0
 * means none.
 */
#define PORT_MAX     256
#define IFIDX_MAX    16384
#define VRF_MAX      4096
#define COUNTERS_MAX 68 /* 64 forwarders, punt, neigh, and room */

enum reason {
#define DROP(name, text) DROP_##name,
#define PUNT(name, text)
#include "base/reason.def"
#undef PUNT
#undef DROP
	N_DROP,
	PUNT_before_first = N_DROP - 1,
#define DROP(name, text)
#define PUNT(name, text) PUNT_##name,
#include "base/reason.def"
#undef DROP
#undef PUNT
	N_REASON,
};

struct reason_info {
	const char *name; /* "no_route" */
	const char *text; /* for `fpmctl show counters` */
};
extern const struct reason_info reason_info[N_REASON];

struct if_counters {
	uint64_t rx_packets, rx_bytes; /* frames taken from the port, tags included */
	uint64_t tx_packets, tx_bytes; /* frames given to the port, tags included */
};

/* What came in by members of a VRF while they were that, and what of it was dropped. */
struct vrf_counters {
	uint64_t rx_packets, rx_bytes; /* frames, tags included */
	uint64_t dropped;
};

/* Packets of one punt class: passed + policed + over_share + ring_full is all of them. */
struct class_counters {
	uint64_t passed;     /* given to the host, or an ICMP error sent */
	uint64_t policed;    /* dropped: over the rate of the class */
	uint64_t over_share; /* dropped: over the rate of their source */
	uint64_t ring_full;  /* dropped: within the rates, but the host is behind */
	uint64_t taken;      /* of those passed, taken on by the punt thread */
};

/* Stages of a forwarder, as its time is told. */
enum cycles {
	CYCLES_RECEIVE,   /* the port's receive function */
	CYCLES_PARSE,     /* headers */
	CYCLES_LOOKUP,    /* route and path */
	CYCLES_ADJACENCY, /* neighbor */
	CYCLES_REWRITE,   /* TTL, checksum, MACs */
	CYCLES_DISPATCH,  /* into transmit buffers, to the punt thread, dropped */
	CYCLES_SEND,      /* the port's transmit function */
	N_CYCLES
};
extern const char *const cycles_name[N_CYCLES];

struct counters {
	alignas(64) uint64_t reason[N_REASON];
	struct if_counters port[IFIDX_MAX]; /* by ifidx */
	struct vrf_counters vrf[VRF_MAX];   /* by number; 0, table main, is not counted */
	struct class_counters class[N_PUNT_CLASS];
	uint64_t forwarded[2]; /* packets forwarded by FIB: [0] IPv4, [1] IPv6 */
	uint64_t to_kernel;    /* frames written to a TAP */
	uint64_t from_kernel;  /* frames read from a TAP and sent */
	uint64_t icmp_sent;    /* ICMP and ICMPv6 errors originated */
	uint64_t icmp_limited; /* not sent: rate, RFC 1812 4.3.2.7, or no way back */
	uint64_t held;         /* packets let go when their neighbor answered */
	uint64_t watch_lost;   /* records of fpmctl trace and capture without room */
	uint64_t resyncs;      /* the kernel's tables read again: netlink had overrun */
	uint64_t bursts, idle_polls, sleeps;
	uint64_t rounds; /* of a forwarder's loop: it hangs when this stands still */
	uint64_t cycles[N_CYCLES];            /* TSC ticks, in the rounds that were timed */
	uint64_t timed_packets, timed_bursts; /* received in those */
	char name[16];                        /* "fwd-0", "punt" */
	bool forwards;                        /* a forwarder's */
	int cpu;                              /* that it is pinned to, of forwarders */
};

/*
 * Register a zeroed block for one thread. Aborts past COUNTERS_MAX. Lives as long as the
 * process. Not thread-safe: main registers for all.                              [main]
 */
struct counters *counters_register(const char *name);

/* The registered blocks, for readers. Returns how many; *blocks stays valid. */
unsigned int counters_blocks(struct counters *const **blocks);

/* Add up one field: relaxed loads of single-writer counters. */
uint64_t counters_reason(enum reason reason);
void counters_port(unsigned int ifidx, struct if_counters *sum);
void counters_class(enum punt_class class, struct class_counters *sum);
/* Less what whoever had the number before left in it. */
void counters_vrf(unsigned int vrf, const struct vrf_counters *base,
		  struct vrf_counters *sum);

/* Single-writer increment that a concurrent reader sees whole. */
static inline void
counter_add(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

/* A packet of a VRF was dropped; 0: of none. */
static inline void
counter_vrf_drop(struct counters *c, unsigned int vrf)
{
	if (vrf != 0)
		counter_add(&c->vrf[vrf].dropped, 1);
}

static inline uint64_t
counter_read(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

#endif
