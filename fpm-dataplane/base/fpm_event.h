/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fpm_event: decoded events of the netlink stream, in the order of the stream.
 *
 * Events have a fixed size, so that a batch is one array. Inline next hops and group
 * members, which are rare, are in the array `hops`, which the event owns until it is in a
 * batch (msg_fpm_batch.holds_hops).
 */
#ifndef BASE_FPM_EVENT_H
#define BASE_FPM_EVENT_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/histogram.h"
#include "base/msg.h"

enum fpm_event_kind {
	FPM_SESSION_UP,   /* a client connected: `gen` is the new generation */
	FPM_SESSION_DOWN, /* the client left; its routes stay in force */
	/* zebra's netlink port id, if FPM_SESSION_UP had none; or a hold, or its end */
	FPM_ZEBRA,
	FPM_ROUTE,     /* upsert, key (table, prefix) */
	FPM_ROUTE_DEL, /* delete by the same key */
	FPM_NEXTHOP,   /* upsert of id `nhid`: one hop, a group, or a blackhole */
	FPM_NEXTHOP_DEL,
};

/* The table of events that are no IP routes (FAMILY_LABEL, FAMILY_MAC). */
#define FPM_TABLE_NONE UINT32_MAX

/*
 * rib uses these numbers for tables of its own (rib/source.h). Linux lets a user give them
 * to tables of the kernel, too.
 */
#define TABLES_OF_RIB_FIRST 0xfff00000u
#define TABLES_OF_RIB       65536u

/*
 * Return true if a table of the kernel has a number that is used here for something else.
 */
static inline bool
table_is_reserved(uint32_t table)
{
	return table == FPM_TABLE_NONE || table - TABLES_OF_RIB_FIRST < TABLES_OF_RIB;
}

/*
 * HOP_POP: the next hop of a label's route. It pushes no new label, so the label is popped.
 * HOP_SEG6: SRv6, an end point or a headend. HOP_LWTUNNEL: an encapsulation that the kernel
 * alone makes.
 */
enum hop_encap {
	HOP_PLAIN,
	HOP_MPLS,
	HOP_SEG6,
	HOP_OTHER_ENCAP,
	HOP_POP,
	HOP_LWTUNNEL,
	N_HOP_ENCAP,
};

/* Words of base/srv6_words.h. */
#define FPM_WORDS_MAX 28

/* A next hop; or a member of a group, which has only id and weight. */
struct fpm_hop {
	uint32_t id;       /* member: id of a singleton; else 0 */
	uint32_t ifindex;  /* 0: none given */
	uint32_t weight;   /* 1..65536; 1 when not given */
	uint8_t gw_family; /* 0: no gateway (the destination is on the link), 4, 6 */
	uint8_t encap;     /* enum hop_encap */
	bool onlink;
	bool dead; /* RTNH_F_DEAD of one of several next hops: Linux does not use it */
	uint8_t n_labels; /* HOP_MPLS; 0: no label, or more than LABELS_MAX */
	/*
	 * 20 bits each, host order, outermost first. HOP_SEG6: n_labels words of
	 * base/srv6_words.h; if n_labels is 0, it is unsupported, and `refusal` is the cause.
	 */
	uint32_t label[FPM_WORDS_MAX];
	uint8_t refusal;    /* HOP_SEG6: enum srv6_refusal */
	uint16_t label_ttl; /* HOP_MPLS: LABEL_TTL_OWN | TTL; 0: by the kernel's sysctls */
	struct ipaddr gw;
};

struct fpm_event {
	uint8_t kind; /* enum fpm_event_kind */
	/* FPM_ROUTE: RTN_UNICAST, RTN_BLACKHOLE, _UNREACHABLE, _PROHIBIT */
	uint8_t rtm_type;
	uint8_t protocol;   /* RTPROT_* as sent */
	bool is_group;      /* FPM_NEXTHOP: hops are members; FPM_ROUTE: always false */
	bool blackhole;     /* FPM_NEXTHOP */
	uint8_t label_mode; /* FPM_ROUTE of a label: enum label_mode */
	uint16_t n_hops;    /* entries in `hops` */
	uint32_t table;     /* FPM_ROUTE*: 254 is main */
	uint32_t nhid;      /* FPM_NEXTHOP*: the id; FPM_ROUTE: RTA_NH_ID or 0 (see hops) */
	uint32_t mtu_bytes; /* FPM_ROUTE: RTAX_MTU, 0 when not given */
	union {
		struct prefix prefix; /* FPM_ROUTE* */
		struct {
			uint32_t gen; /* FPM_SESSION_UP, _DOWN */
			uint32_t nl_pid;
			/* FPM_ZEBRA: end of the hold, CLOCK_BOOTTIME; 0: no hold */
			uint32_t held_until_s;
		} session;
	};
	/* Owned by the event, except in a batch with holds_hops; NULL when n_hops is 0. */
	struct fpm_hop *hops;
};
static_assert(sizeof(struct fpm_event) <= 48,
	      "the queue has room for a full table while rib does not read it");

#define FPM_BATCH_MAX 128

struct msg_fpm_batch {
	struct msg m;
	uint32_t n;
	/* octets that this message and its arrays add to the queue's account */
	uint32_t bytes;
	uint64_t rx_ms;  /* CLOCK_MONOTONIC when fpm sent the batch to rib */
	bool holds_hops; /* the hops of all events are in this allocation, after ev[n] */
	struct fpm_event ev[FPM_BATCH_MAX];
};

static inline void
fpm_event_clear(struct fpm_event *ev)
{
	free(ev->hops);
	ev->hops = NULL;
	ev->n_hops = 0;
}

#define FPM_HOLD_S     120u /* default */
#define FPM_HOLD_MAX_S 3600u

/*
 * QUERY_HOLD: FRR is about to be restarted. FRR ends its daemons one by one, zebra last,
 * and zebra withdraws their routes meanwhile. fpm ends the session, and the routes stay in
 * force. fpm refuses this process of zebra for `seconds`, and accepts another process at
 * once. A hold of 0 seconds ends the hold in force. rib replies when the hold is in force
 * and the checkpoint has it.
 */
struct msg_hold {
	struct msg_query q;
	unsigned int seconds;
};

/* The result of a route that zebra sent, for zebra: MSG_FEEDBACK, rib -> fpm. */
struct fpm_feedback {
	struct prefix prefix;
	uint32_t table;
	uint8_t protocol, rtm_type; /* as received: zebra finds its route by them */
	bool failed;                /* not forwarded: unsupported, or out of memory */
};

#define FPM_FEEDBACK_MAX 1024

struct msg_feedback {
	struct msg m;
	struct msg_feedback *next; /* rib's list before the message is sent */
	uint32_t gen;              /* generation of the session that sent the routes */
	uint32_t n;
	struct fpm_feedback route[FPM_FEEDBACK_MAX];
};

/*
 * State of the FPM channel, for ui and rib. Every field has one writer; others read
 * relaxed.
 */
struct fpm_status {
	_Atomic uint64_t bytes, frames, messages; /* W:fpm since start */
	/* W:fpm events decoded */
	_Atomic uint64_t routes, route_dels, nexthops, nexthop_dels;
	/* W:fpm MPLS label routes and EVPN MACs among `routes` */
	_Atomic uint64_t labels, macs;
	/* W:fpm netlink messages that are not used: other types, link-local prefixes */
	_Atomic uint64_t skipped_type;
	_Atomic uint64_t skipped_route; /* W:fpm routes of an unsupported kind */
	/* W:fpm messages skipped because they were truncated or inconsistent */
	_Atomic uint64_t malformed;
	_Atomic uint64_t bad_frames; /* W:fpm sessions closed for a broken frame header */
	_Atomic uint64_t
		strangers; /* W:fpm connections refused because of their address or user */
	_Atomic uint64_t accepts, replaced, closes; /* W:fpm connections */
	_Atomic uint64_t feedback;                  /* W:fpm routes acknowledged to zebra */
	/* W:fpm part of `feedback`: routes acknowledged as failed */
	_Atomic uint64_t feedback_failed;
	_Atomic uint64_t overflows; /* W:fpm sessions closed: queue limit reached */
	_Atomic uint32_t gen;       /* W:fpm session generation, 0: none yet */
	_Atomic uint32_t connected; /* W:fpm 1 while a client is connected */
	/* W:fpm netlink port id of the last zebra, also if only the predecessor saw it */
	_Atomic uint32_t nl_pid;
	/* W:rib before fpm starts R:fpm  the last FPM_ZEBRA that the checkpoint has */
	_Atomic uint32_t old_nl_pid, old_held_until_s;
	_Atomic uint64_t queue_bytes_in;   /* W:fpm accounted octets sent to rib */
	_Atomic uint64_t queue_bytes_out;  /* W:rib accounted octets that rib has handled */
	_Atomic uint64_t queue_high_bytes; /* W:fpm high water of in - out */
	_Atomic uint64_t queue_limit_bytes; /* W:fpm */
	/* W:fpm rx_ms of the batch that entered the empty queue */
	_Atomic uint64_t queue_since_ms;
	_Atomic uint64_t handled_rx_ms; /* W:rib rx_ms of the last batch that rib handled */
	_Atomic uint64_t lag_high_ms; /* W:rib highest time from fpm's sending to the FIB */
	struct histogram commit;      /* W:rib commits that published something */
	struct histogram grace;       /* W:rib time of grace periods after commits */
	_Atomic uint32_t listening;   /* W:fpm 1 while zebra can connect */
	/* W:fpm 1 while connections are refused because rib is behind */
	_Atomic uint32_t refusing;
	/* W:fpm 1 while zebra's process is refused because of a hold */
	_Atomic uint32_t held;
	_Atomic uint64_t last_rx_ms;  /* W:fpm CLOCK_MONOTONIC of the last octet */
	_Atomic uint64_t up_since_ms; /* W:fpm CLOCK_MONOTONIC of the accept */
};
extern struct fpm_status fpm_status;

/*
 * Return the number of octets that fpm has sent to rib and rib has not handled.
 *                                                                              [any thread]
 */
static inline uint64_t
queue_depth(void)
{
	/*
	 * Read `out` first: rib adds to it only octets of batches that `in` already
	 * counts.
	 */
	uint64_t out =
		atomic_load_explicit(&fpm_status.queue_bytes_out, memory_order_acquire);
	uint64_t in =
		atomic_load_explicit(&fpm_status.queue_bytes_in, memory_order_relaxed);

	return in > out ? in - out : 0;
}

/* Return the depth above which the log and `fpmctl show fpm` warn. */
static inline uint64_t
queue_warn_bytes(uint64_t limit_bytes)
{
	return limit_bytes / 4 * 3;
}

#endif
