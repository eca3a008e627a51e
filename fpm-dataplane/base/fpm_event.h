/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fpm_event: what fpm understood of the netlink stream, in the order it came.
 *
 * Fixed size, so that a batch is one array; the rare rest (inline next hops, group members)
 * hangs behind `hops` and is owned by the event.
 */
#ifndef BASE_FPM_EVENT_H
#define BASE_FPM_EVENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/histogram.h"
#include "base/msg.h"

enum fpm_event_kind {
	FPM_SESSION_UP,   /* a client connected: `gen` is the new generation */
	FPM_SESSION_DOWN, /* it left; what it taught stays in force */
	FPM_ZEBRA,     /* who it is, when that is known late; until when it is held off */
	FPM_ROUTE,     /* upsert, key (table, prefix) */
	FPM_ROUTE_DEL, /* by the same key */
	FPM_NEXTHOP,   /* upsert of id `nhid`: one hop, a group, or a blackhole */
	FPM_NEXTHOP_DEL,
};

/* Table of what is no IP route (FAMILY_LABEL, FAMILY_MAC). */
#define FPM_TABLE_NONE UINT32_MAX

enum hop_encap { HOP_PLAIN, HOP_MPLS, HOP_SEG6, HOP_OTHER_ENCAP };

/* One way out; or one member of a group (then only id and weight count). */
struct fpm_hop {
	uint32_t id;       /* member: id of a singleton; else 0 */
	uint32_t ifindex;  /* 0: none given */
	uint32_t weight;   /* 1..65536; 1 when not given */
	uint8_t gw_family; /* 0: no gateway (the destination is on the link), 4, 6 */
	uint8_t encap;     /* enum hop_encap; anything but PLAIN cannot be forwarded yet */
	bool onlink;
	struct ipaddr gw;
};

struct fpm_event {
	uint8_t kind;     /* enum fpm_event_kind */
	uint8_t rtm_type; /* FPM_ROUTE: RTN_UNICAST, RTN_BLACKHOLE, _UNREACHABLE, _PROHIBIT */
	uint8_t protocol;   /* RTPROT_* as sent */
	bool is_group;      /* FPM_NEXTHOP: hops are members; FPM_ROUTE: always false */
	bool blackhole;     /* FPM_NEXTHOP */
	uint16_t n_hops;    /* entries behind `hops` */
	uint32_t table;     /* FPM_ROUTE*: 254 is main */
	uint32_t nhid;      /* FPM_NEXTHOP*: the id; FPM_ROUTE: RTA_NH_ID or 0 (see hops) */
	uint32_t mtu_bytes; /* FPM_ROUTE: RTAX_MTU, 0 when not given */
	union {
		struct prefix prefix; /* FPM_ROUTE* */
		struct {
			uint32_t gen; /* FPM_SESSION_UP, _DOWN */
			uint32_t nl_pid;
			uint32_t held_until_s; /* FPM_ZEBRA: CLOCK_BOOTTIME, 0: is not */
		} session;
	};
	struct fpm_hop *hops; /* owned; NULL when n_hops is 0 */
};

#define FPM_BATCH_MAX 128

struct msg_fpm_batch {
	struct msg m;
	uint32_t n;
	uint32_t bytes; /* accounted against the queue: this message and all behind it */
	uint64_t rx_ms; /* CLOCK_MONOTONIC when it was handed over */
	struct fpm_event ev[FPM_BATCH_MAX];
};

static inline void
fpm_event_clear(struct fpm_event *ev)
{
	free(ev->hops);
	ev->hops = NULL;
	ev->n_hops = 0;
}

#define FPM_HOLD_S     120u /* unless told otherwise */
#define FPM_HOLD_MAX_S 3600u

/*
 * QUERY_HOLD: FRR is about to be restarted. It ends its daemons one by one, zebra last, which
 * withdraws their routes meanwhile: what zebra has said until now is kept, as if it had gone
 * already, and that process of zebra is not let in again for so long. Another one is at once.
 * 0 seconds: it is over. The reply comes when all of that is so and the checkpoint has it.
 */
struct msg_hold {
	struct msg_query q;
	unsigned int seconds;
};

/* What became of a route that zebra sent, for zebra: MSG_FEEDBACK, rib -> fpm. */
struct fpm_feedback {
	struct prefix prefix;
	uint32_t table;
	uint8_t protocol, rtm_type; /* as they came: zebra finds its route by them */
	bool failed;                /* not forwarded: not supported, or no memory */
};

#define FPM_FEEDBACK_MAX 1024

struct msg_feedback {
	struct msg m;
	struct msg_feedback *next; /* rib's own, before it is sent */
	uint32_t gen;              /* of the session that the routes came by */
	uint32_t n;
	struct fpm_feedback route[FPM_FEEDBACK_MAX];
};

/*
 * What is known of the channel, for ui and rib. Every field has one writer; others read
 * relaxed.
 */
struct fpm_status {
	_Atomic uint64_t bytes, frames, messages;                    /* W:fpm since start */
	_Atomic uint64_t routes, route_dels, nexthops, nexthop_dels; /* W:fpm events made */
	_Atomic uint64_t labels, macs; /* W:fpm of those: MPLS label routes, EVPN's MACs */
	_Atomic uint64_t skipped_type; /* W:fpm  netlink types that mean nothing to us */
	_Atomic uint64_t
		skipped_route;      /* W:fpm  routes of a kind we do not take (MPLS, ...) */
	_Atomic uint64_t malformed; /* W:fpm  messages cut or contradictory: skipped */
	_Atomic uint64_t bad_frames; /* W:fpm  sessions closed for a broken frame header */
	_Atomic uint64_t
		strangers; /* W:fpm connections refused: not zebra's address or user */
	_Atomic uint64_t accepts, replaced, closes; /* W:fpm connections */
	_Atomic uint64_t feedback;        /* W:fpm  routes acknowledged to zebra */
	_Atomic uint64_t feedback_failed; /* W:fpm  and of those, as failed */
	_Atomic uint64_t overflows;       /* W:fpm  sessions closed: queue limit reached */
	_Atomic uint32_t gen;             /* W:fpm  session generation, 0: none yet */
	_Atomic uint32_t connected;       /* W:fpm  1 while a client is there */
	_Atomic uint32_t nl_pid; /* W:fpm  netlink port id of the zebra last seen, also by
				  * the daemon before */
	/* What that one knew, by its checkpoint: as in FPM_ZEBRA. */
	_Atomic uint32_t old_nl_pid, old_held_until_s; /* W:rib before fpm starts R:fpm */
	_Atomic uint64_t queue_bytes_in;    /* W:fpm  accounted bytes given to rib */
	_Atomic uint64_t queue_bytes_out;   /* W:rib  of those, handled */
	_Atomic uint64_t queue_high_bytes;  /* W:fpm high water of in - out */
	_Atomic uint64_t queue_limit_bytes; /* W:fpm */
	_Atomic uint64_t queue_since_ms;    /* W:fpm CLOCK_MONOTONIC when it last filled */
	_Atomic uint64_t handled_rx_ms; /* W:rib rx_ms of the last batch that it handled */
	_Atomic uint64_t lag_high_ms;   /* W:rib high water: handed over -> in the FIB */
	struct histogram commit;        /* W:rib  commits that published something */
	struct histogram
		grace; /* W:rib  from then on until forwarders had let go of the old */
	_Atomic uint32_t listening;   /* W:fpm 1 while zebra can connect */
	_Atomic uint32_t refusing;    /* W:fpm 1 while nobody is accepted: rib is behind */
	_Atomic uint32_t held;        /* W:fpm 1 while zebra may not come back: it ends */
	_Atomic uint64_t last_rx_ms;  /* W:fpm  CLOCK_MONOTONIC of the last octet */
	_Atomic uint64_t up_since_ms; /* W:fpm  CLOCK_MONOTONIC of the accept */
};
extern struct fpm_status fpm_status;

/* Octets that fpm has given to rib and rib has not handled.                  [any thread] */
static inline uint64_t
queue_depth(void)
{
	/* `out` first: rib adds to it only what it found in a batch that is in `in` already. */
	uint64_t out =
		atomic_load_explicit(&fpm_status.queue_bytes_out, memory_order_acquire);
	uint64_t in =
		atomic_load_explicit(&fpm_status.queue_bytes_in, memory_order_relaxed);

	return in > out ? in - out : 0;
}

/* From here on the queue is near its limit: told in the log and by `fpmctl show fpm`. */
static inline uint64_t
queue_warn_bytes(uint64_t limit_bytes)
{
	return limit_bytes / 4 * 3;
}

#endif
