/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * counters: one block per thread, written by that thread only and read by any thread
 * without a lock.
 *
 * Counters are never reset: a reader that wants a rate subtracts two readings. The ui
 * thread adds up the blocks.
 */
#ifndef BASE_COUNTERS_H
#define BASE_COUNTERS_H

#include <stdalign.h>
#include <stdint.h>

#include "base/policer.h"

/*
 * Numbers of interfaces: 1 to PORT_MAX - 1 are ports, numbers from PORT_MAX on are other
 * interfaces (VLANs, macvlans, tunnels, bridges over vxlan devices), 0 is no interface.
 */
#define PORT_MAX     256
#define IFIDX_MAX    16384
#define VRF_MAX      4096
#define SIDS_MAX     16384 /* SIDs of SRv6 that have counters; 0 is none */
#define COUNTERS_MAX 68    /* 64 forwarders, punt, neigh and spare */

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

/*
 * Frames that interfaces received while they were members of a VRF, and drops among them.
 */
struct vrf_counters {
	uint64_t rx_packets, rx_bytes; /* frames, tags included */
	uint64_t dropped;
};

/* Packets of one SID of SRv6, see fib/sid_number.h. */
struct sid_counters {
	uint64_t packets,
		bytes;   /* taken by the end point; octets from the IPv6 header on */
	uint64_t errors; /* packets that the end point dropped or refused */
};

/* Packets of one punt class: their number is passed + policed + over_share + ring_full. */
struct class_counters {
	uint64_t passed;     /* given to the host, or an ICMP error sent */
	uint64_t policed;    /* dropped: over the rate of the class */
	uint64_t over_share; /* dropped: over the rate of their source */
	/* dropped: within the rates, but the ring to the punt thread is full */
	uint64_t ring_full;
	/* packets of `passed` that the punt thread has taken from the ring */
	uint64_t taken;
};

/* Stages of a forwarder for which its time is counted. */
enum cycles {
	CYCLES_RECEIVE,   /* the port's receive function */
	CYCLES_PARSE,     /* headers */
	CYCLES_HOOK,      /* a program of `fpmctl hook` */
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
	struct vrf_counters vrf[VRF_MAX]; /* by VRF number; 0, table main, is not counted */
	uint64_t
		urpf[IFIDX_MAX]; /* part of DROP_urpf: packets that an interface received */
	struct sid_counters sid[SIDS_MAX]; /* by number of the SID */
	struct class_counters class[N_PUNT_CLASS];
	/* forwarded packets, by the FIB used: [0] IPv4, [1] IPv6, [2] MPLS labels alone */
	uint64_t forwarded[3];
	uint64_t to_kernel;   /* frames written to a TAP */
	uint64_t from_kernel; /* frames read from a TAP and sent */
	uint64_t icmp_sent;   /* ICMP and ICMPv6 errors originated */
	/*
	 * ICMP errors not sent: over the rate (RFC 1812, 4.3.2.7), or no route to the
	 * source
	 */
	uint64_t icmp_limited;
	uint64_t held; /* packets sent after their neighbor answered */
	/* records of fpmctl trace and capture for which the ring had no room */
	uint64_t watch_lost;
	/*
	 * sFlow, by port: samples for which the ring had no room, and dropped packets that
	 * were not recorded. Port 0: unknown.
	 */
	uint64_t sample_lost[PORT_MAX], discard_lost[PORT_MAX];
	/* times that neigh read the kernel's tables again because netlink had overrun */
	uint64_t resyncs;
	uint64_t bursts, idle_polls, sleeps;
	/* rounds of a forwarder's loop; if the count stands still, the forwarder hangs */
	uint64_t rounds;
	uint64_t cycles[N_CYCLES];            /* TSC ticks, in the rounds that are timed */
	uint64_t timed_packets, timed_bursts; /* received in the timed rounds */
	char name[16];                        /* "fwd-0", "punt" */
	bool forwards;                        /* true for a forwarder */
	int cpu; /* forwarders: the CPU that the thread is pinned to */
};

/*
 * Register a zeroed block for one thread. The block lives as long as the process. Aborts
 * beyond COUNTERS_MAX blocks. Not thread-safe: main registers the blocks of all threads.
 *                                                                                   [main]
 */
struct counters *counters_register(const char *name);

/* Get the registered blocks. Returns their number; *blocks stays valid.    [any thread] */
unsigned int counters_blocks(struct counters *const **blocks);

/* Add up one field over all blocks, with relaxed loads.                    [any thread] */
uint64_t counters_reason(enum reason reason);
void counters_port(unsigned int ifidx, struct if_counters *sum);
/*
 * Store the present counts of the number `ifidx`, which an interface gets now. [neigh]
 * counters_interface() and counters_urpf() subtract these counts, because another interface
 * may have had the number before. The interface is published in the FIB afterwards, with
 * release, so a reader that finds it there also sees these counts.
 */
void counters_interface_begin(unsigned int ifidx);
void counters_interface(unsigned int ifidx, struct if_counters *sum);
uint64_t counters_urpf(unsigned int ifidx);
void counters_class(enum punt_class class, struct class_counters *sum);
/* Subtract `base`, the counts that earlier VRFs of the same number left in the blocks. */
void counters_vrf(unsigned int vrf, const struct vrf_counters *base,
		  struct vrf_counters *sum);
/* Subtract `base`, as counters_vrf() does. */
void counters_sid(unsigned int sid, const struct sid_counters *base,
		  struct sid_counters *sum);

/*
 * Add to a counter of the calling thread. A concurrent reader never sees half of the word.
 */
static inline void
counter_add(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

/* Count a dropped packet of VRF `vrf`; 0 is no VRF. */
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
