/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernel_event: decoded changes of the kernel's routing tables, in the order in which the
 * kernel made them. Thread rtnl sends them to rib.
 */
#ifndef BASE_KERNEL_EVENT_H
#define BASE_KERNEL_EVENT_H

#include "base/fpm_event.h"
#include "base/routes_from.h"

enum kernel_event_kind {
	KERNEL_ROUTE,     /* added or replaced; `order` is its place among equal metrics */
	KERNEL_ROUTE_DEL, /* deleted */
	/*
	 * the first route of this metric was replaced by a route that rtnl does not pass on
	 */
	KERNEL_ROUTE_REPLACED,
	KERNEL_NEXTHOP, /* next-hop object `route.nhid` */
	KERNEL_NEXTHOP_DEL,
	KERNEL_DUMP_BEGIN, /* the routes or next hops of `dump` follow */
	KERNEL_DUMP_END,   /* other objects of `dump` no longer exist */
};

/* Place of a new route among the routes of the same prefix, table and metric. */
enum kernel_order {
	KERNEL_FIRST, /* IPv4: `ip route add` and `prepend` */
	KERNEL_LAST,  /* `ip route append`; IPv6: every new route */
	/* it replaces the first route: `ip route replace`; every MPLS route */
	KERNEL_REPLACE,
	/* a route of a dump; a dump lists the routes of a prefix in the kernel's order */
	KERNEL_LISTED,
};

/* The routes or next-hop objects that a dump covers. */
struct kernel_scope {
	uint8_t family;   /* 4, 6 or FAMILY_LABEL: routes; 0: next-hop objects */
	uint8_t protocol; /* RTPROT_*; 0: all protocols that rtnl passes on */
	uint32_t table;   /* number of the kernel's table; 0: all tables */
};

struct kernel_event {
	uint8_t kind;             /* enum kernel_event_kind */
	uint8_t order;            /* KERNEL_ROUTE: enum kernel_order */
	uint8_t scope;            /* KERNEL_ROUTE*: RT_SCOPE_* */
	uint8_t preference;       /* KERNEL_ROUTE* of IPv6: RFC 4191, 0 high to 2 low */
	bool is_local;            /* KERNEL_ROUTE*: of table local, looked up before main */
	struct kernel_scope dump; /* KERNEL_DUMP_* */
	uint32_t metric;          /* KERNEL_ROUTE*: RTA_PRIORITY */
	uint32_t ifindex;         /* KERNEL_ROUTE*: RTA_OIF; 0: none */
	/*
	 * KERNEL_ROUTE*: only for packets from these sources; length 0: for all packets.
	 * IPv4: only for packets of one TOS (tos_condition()).
	 */
	struct prefix src;
	/* KERNEL_ROUTE*: RTA_PREFSRC of IPv4, as received (only compared); 0: none */
	uint32_t source4;
	/*
	 * KERNEL_ROUTE* of IPv4: a hash of the order of the next hops, the metrics
	 * (RTA_METRICS) and the realms. For Linux two routes that differ in these are
	 * different routes. The hash is never 0; 0: not known.
	 */
	uint32_t details;
	/*
	 * KERNEL_ROUTE*, KERNEL_NEXTHOP*: as in events of zebra, and also with the types
	 * local, broadcast, anycast and throw. The table is 254 if `is_local`. The event of
	 * a deleted route has its next hops, unless it is the route of a label. A route of
	 * type blackhole has its next-hop id, too: the object may be the blackhole.
	 */
	struct fpm_event route;
};

/* Bits of the TOS that Linux compares in a lookup (IPTOS_RT_MASK). */
#define TOS_LOOKUP_MASK 0x1cu

/*
 * Return the condition of a route for packets of one TOS. It is stored in place of a source
 * prefix (kernel_event.src).
 */
static inline struct prefix
tos_condition(uint8_t tos)
{
	return (struct prefix){.family = 4, .len = 8, .addr.octet[0] = tos};
}

#define KERNEL_BATCH_MAX 128

struct msg_kernel_batch {
	struct msg m;
	uint32_t n;
	uint32_t bytes; /* octets of this message and its arrays in kernel_status.in */
	struct kernel_event ev[KERNEL_BATCH_MAX];
};

/* State of thread rtnl. Every field has one writer; others read relaxed. */
struct kernel_status {
	_Atomic uint64_t messages; /* W:rtnl since start, dumped ones included */
	_Atomic uint64_t routes, route_dels, nexthops, nexthop_dels; /* W:rtnl passed on */
	_Atomic uint64_t of_zebra; /* W:rtnl routes of zebra, not passed on: FPM has them */
	_Atomic uint64_t skipped;  /* W:rtnl multicast, link-local, loopback, cached */
	_Atomic uint64_t by_source; /* W:rtnl part of `routes`: source-specific routes */
	_Atomic uint64_t by_tos;    /* W:rtnl part of `routes`: IPv4 routes for one TOS */
	_Atomic uint32_t tos_now;   /* W:rib IPv4 routes for one TOS that exist now */
	_Atomic uint64_t malformed; /* W:rtnl truncated or inconsistent messages */
	_Atomic uint64_t overruns; /* W:rtnl events were lost, all tables were read again */
	_Atomic uint64_t dumps;    /* W:rtnl dumps that ended */
	_Atomic uint64_t interrupted; /* W:rtnl dumps that were started again */
	_Atomic uint64_t
		cut; /* W:rtnl dumps that Linux ended at a route that is too large */
	_Atomic uint32_t
		cut_now; /* W:rtnl families of the last such dumps: 1 IPv4, 2 IPv6 */
	_Atomic uint64_t in, out; /* W:rtnl, rib: octets sent to rib, handled by rib */
	_Atomic uint32_t paused;  /* W:rtnl 1 while reading pauses because rib is behind */
	_Atomic uint32_t in_step; /* W:rtnl 1 when all tables were read since an overrun */
	/*
	 * W:rib 1 if the restored checkpoint had more than KERNEL_LARGE routes, some of
	 * them of the kernel.
	 */
	_Atomic uint32_t restored;
	/* W:rib groups with next hops both by ports and by interfaces of the kernel */
	_Atomic uint32_t mixed;
	/* W:rtnl IPv6 routes with several next hops whose first next hop has expired */
	_Atomic uint32_t expired_joined;
	/* W:rib prefixes in table local that hide routes in Linux but not here */
	_Atomic uint32_t short_local;
	/*
	 * W:rib IPv6 routes that Linux prefers to another route of their prefix and metric
	 * for packets that come by their interface
	 */
	_Atomic uint32_t by_ingress;
	/* W:rib IPv6 routes with several next hops that were added with several MTUs */
	_Atomic uint32_t several_mtus;
};
extern struct kernel_status kernel_status;

/* A table with more routes is large: a walk of the kernel over it takes more than 10 ms. */
#define KERNEL_LARGE 50000u

/*
 * Return the number of octets that rtnl has sent to rib and rib has not handled.
 *                                                                              [any thread]
 */
static inline uint64_t
kernel_queue_depth(void)
{
	uint64_t out = atomic_load_explicit(&kernel_status.out, memory_order_acquire);
	uint64_t in = atomic_load_explicit(&kernel_status.in, memory_order_relaxed);

	return in > out ? in - out : 0;
}

/* rtnl stops reading above PAUSE and continues below RESUME. */
#define KERNEL_QUEUE_RESUME_BYTES (16u << 20)
#define KERNEL_QUEUE_PAUSE_BYTES  (32u << 20)

#endif
