/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * msg: all messages between threads.
 *
 * The sender allocates a message with msg_new(). The receiver owns it, and frees it with
 * msg_free() or sends it on. A message never has a pointer into the sender's tables.
 * "Bound" names the limit on messages in flight.
 */
#ifndef BASE_MSG_H
#define BASE_MSG_H

#include <stdbool.h>
#include <stdint.h>
#include <urcu/wfcqueue.h>

#include "base/prefix.h"

enum msg_type {
	/* fpm -> rib: decoded events, in order. Bound: fpm's byte account */
	MSG_FPM_BATCH,
	/*
	 * rtnl -> rib: routes and next hops of the kernel, in order. Bound: rtnl's account
	 */
	MSG_KERNEL_BATCH,
	/*
	 * rtnl -> rib: all rules of a family (rule.h). Bound: one per change of the kernel
	 */
	MSG_RULES,
	/* rib -> neigh: the interfaces that rules concern. Bound: one per change of them */
	MSG_RULE_IFACES,
	/* neigh -> rib, punt: an interface of the kernel changed. Bound: one per change */
	MSG_LINK,
	/* neigh -> rib: a VRF of the kernel was added or removed. Bound: one per change */
	MSG_VRF,
	/* rib -> neigh: keep adjacency `adj` resolved. Bound: next hops */
	MSG_ADJ_WATCH,
	/* neigh -> rib: `adj` is watched and has the kernel's neighbor state */
	MSG_ADJ_READY,
	/* rib -> neigh: stop watching `adj`; answered with MSG_ADJ_FREED */
	MSG_ADJ_UNWATCH,
	/* neigh -> rib: neigh no longer writes slot `adj` */
	MSG_ADJ_FREED,
	/* neigh -> rib: a watched neighbor failed, or answered (again) */
	MSG_ADJ_STATE,
	/* bfd -> rib: a next hop is dead, or alive again. Bound: sessions of BFD */
	MSG_BFD_HOP,
	/*
	 * bfd -> punt: a peer of a session, again every BFD_PEER_S. Bound: sessions of BFD
	 */
	MSG_BFD_PEER,
	/* punt -> neigh: packets wait for (ifidx, addr). Bound: hold table */
	MSG_GLEAN,
	/* punt -> neigh: no packet waits for (ifidx, addr); no answer is needed */
	MSG_GLEAN_OVER,
	/* neigh -> punt: (ifidx, addr) resolved or failed. Bound: gleans */
	MSG_NEIGH,
	/* neigh -> punt, manage: a port has a new TAP. Bound: one per port and second */
	MSG_TAP,
	/* rib -> fpm: results of routes, after their grace period. Bound: the queue */
	MSG_FEEDBACK,
	/*
	 * main -> rib, after the last batch: stop changing the checkpoint, because a
	 * successor reads it; or resume
	 */
	MSG_QUIESCE,
	/*
	 * ui, rib -> fpm: end the session, so that zebra connects and replays; -> rtnl:
	 * read the kernel's tables again
	 */
	MSG_REPLAY,
	/* fpm -> rib: a QUERY_HOLD is in force. Sent after the last batch of the session */
	MSG_HELD,
	/* manage -> rib, fpm: new settings. Bound: requests */
	MSG_SETTINGS,
	/* manage -> sflow: new settings. Bound: requests */
	MSG_SFLOW,
	/* manage -> neigh, punt: a port is added or removed. Bound: one, awaited */
	MSG_PORT,
	/*
	 * urcu -> rib, neigh, trace, filter, sflow, bfd: a grace period is over. Bound: one
	 * per commit
	 */
	MSG_RECLAIM,
	/*
	 * ui, trace -> rib, neigh; ui -> trace, manage, fpm, warn, filter, sflow, bfd;
	 * warn, sflow -> rib: a request for some rows. Bound: clients, one of warn,
	 * SFLOW_BATCHES_MAX of sflow
	 */
	MSG_QUERY,
	/*
	 * rib, neigh, trace, manage, warn, filter, sflow, bfd -> sender of the query: the
	 * rows
	 */
	MSG_REPLY,
};

struct msg {
	struct cds_wfcq_node node; /* W:sender, then the mailbox */
	enum msg_type type;
};

#define LOOPBACK_IFINDEX 1u /* of the loopback device, in each namespace */

/* MSG_LINK: state of one kernel interface in the control namespace. */
struct msg_link {
	struct msg m;
	uint32_t ifindex;
	uint16_t ifidx; /* number of the port, VLAN or tunnel, else 0 */
	bool tunnel;    /* it is a tunnel: it has no neighbors */
	bool gre;       /* a tunnel of GRE, which takes MPLS labels */
	bool gone;      /* interface deleted */
	bool up;        /* admin up, and for a port also carrier: usable as an egress */
	/* [0] IPv4, [1] IPv6: routes by this interface do not count while it is not up */
	bool ignore_linkdown[2];
	bool ipv6_off; /* no IPv6 packet may leave by it */
	bool no_ipv4;  /* it has no IPv4 address */
	/* number of the VRF if the interface is a VRF device (MSG_VRF), else 0 */
	uint16_t vrf;
	char name[16];
};

/*
 * MSG_VRF: table `table` gets a FIB, published as fib->vrf[number], or loses it (`gone`).
 */
struct msg_vrf {
	struct msg m;
	uint32_t table;
	uint16_t number; /* 1..FIB_VRF_NONE-1 */
	bool gone;
	char name[16]; /* name of the VRF; if several VRFs share the table, the first */
};

/*
 * MSG_ADJ_WATCH, _READY, _UNWATCH, _FREED, _STATE. Slot numbers are in rib's half of
 * fib->adj.
 */
struct msg_adj {
	struct msg m;
	uint32_t adj;
	uint32_t ifindex;
	uint16_t ifidx;
	uint8_t family;
	struct ipaddr addr;
	bool alive;    /* _STATE: resolved, or being resolved; false: the kernel gave up */
	bool resolved; /* _READY, _STATE: the MAC address is known */
	uint64_t mac; /* _READY, _STATE: the last known address (mac_word()); 0: none yet */
};

/*
 * MSG_BFD_HOP: the state of a next hop, as its single-hop sessions of BFD report it. With
 * family 0: the state of all IPv6 next hops with one MAC address, and addr is
 * ipaddr_of_mac() of this address.
 */
struct msg_bfd_hop {
	struct msg m;
	uint32_t ifindex;
	uint8_t family;
	struct ipaddr addr;
	bool dead;
};

/* MSG_BFD_PEER: this address is a peer of a BFD session. */
struct msg_bfd_peer {
	struct msg m;
	uint16_t vrf; /* number of the VRF; 0: table main */
	uint8_t family;
	struct ipaddr addr;
};

/* MSG_GLEAN, MSG_GLEAN_OVER, MSG_NEIGH: an on-link neighbor. */
struct msg_neigh {
	struct msg m;
	uint16_t ifidx;
	uint8_t family;
	struct ipaddr addr;
	bool resolved; /* MSG_NEIGH: false means the kernel gave up */
};

/*
 * MSG_TAP: the port's TAP was deleted and created again. `ifindex` is that of the new TAP,
 * which the port's descriptor now belongs to.
 */
struct msg_tap {
	struct msg m;
	uint32_t ifindex;
	uint16_t ifidx;
};

/* MSG_RECLAIM: call `fn(owner, arg)` in the owner's thread. */
struct msg_reclaim {
	struct msg m;
	void (*fn)(void *owner, void *arg);
	void *arg;
};

/*
 * MSG_QUIESCE: rib sets `done` when the checkpoint no longer changes. The next
 * MSG_QUIESCE, with NULL, resumes.
 */
struct msg_quiesce {
	struct msg m;
	/* Owned by main, valid until the process ends; NULL: resume. */
	_Atomic bool *done;
};

struct worker;
struct json_t;

enum query_kind {
	QUERY_ROUTES,
	QUERY_RULES,   /* rules of policy routing */
	QUERY_THROUGH, /* to rib: next hops' interfaces that are no ports: {"ifindex"} */
	/*
	 * to rib: links whose routes Linux uses differently: {"name", "why": a
	 * warning_kind_name()}
	 */
	QUERY_LINKS,
	QUERY_NEXTHOPS, /* next hops of zebra and of the kernel, by id */
	QUERY_GROUPS,
	QUERY_LABELS, /* routes of MPLS labels */
	QUERY_ENCAPS, /* label stacks of next hops, headends of SRv6 */
	QUERY_SIDS,   /* SIDs of table main, and their counters */
	QUERY_NEIGHBORS,
	QUERY_SUMMARY,
	QUERY_FIB, /* tries: of main, then of VRFs */
	QUERY_VRFS,
	QUERY_INTERFACES,    /* to neigh */
	QUERY_TUNNELS,       /* to neigh: tunnels left to the kernel, filters of VNIs */
	QUERY_NEIGH_SUMMARY, /* to neigh: number of neighbors by family and state */
	QUERY_AUDIT,         /* compare FIB and RIB; `repair` */
	QUERY_WATCH,         /* to trace: a query of port/watch.h */
	QUERY_MANAGE,        /* to manage: a query of base/msg_manage.h */
	QUERY_WARNINGS,      /* to warn */
	QUERY_FILTER,        /* to filter: the ruleset and its rules */
	QUERY_SFLOW,         /* to sflow: collectors and ports */
	QUERY_BFD,           /* to bfd: the sessions */
	QUERY_MASKS,         /* to rib: struct msg_masks */
	QUERY_HOLD,          /* to fpm: a query of base/fpm_event.h; rib replies */
	QUERY_BREAK,         /* tests only: corrupt `breaking` of `prefix` */
};

/* The source of the shown routes. */
enum query_of {
	OF_FIB,    /* the route in force */
	OF_ZEBRA,  /* the route of zebra, in force or not */
	OF_KERNEL, /* the route that the kernel would use, in force or not */
	OF_EACH,   /* routes in force and zebra's hidden routes, packed: rib/packed.c */
};

enum query_break { BREAK_NOTHING, BREAK_ROUTE, BREAK_TABLE, BREAK_GROUP };

/*
 * MSG_QUERY and its MSG_REPLY are one object that travels there and back. The receiver
 * appends at most `max` rows (JSON objects; dist/openapi.yaml has their keys), moves the
 * cursor, sets `done` after the last row, and sends the object back to `from`.
 */
struct msg_query {
	struct msg m;
	enum query_kind kind;
	struct worker *from; /* receiver of the reply */
	void *client;        /* owned by ui; the receiver of the query does not read it */
	bool has_prefix;     /* only this prefix ... */
	bool longest;        /* ... or the longest match of its address */
	bool all_tables;
	uint8_t of; /* routes: enum query_of */
	/* routes: only of this VRF; 0: of main, and with all_tables of all other tables */
	uint16_t vrf;
	bool repair;
	uint8_t breaking; /* enum query_break */
	uint8_t family;   /* 4, 6 or 0 for both */
	struct prefix prefix;
	unsigned int max;
	/* The receiver's position; zero at first. */
	uint64_t cursor[8];
	bool done;
	struct json_t *rows; /* array; owned by the receiver */
};

/*
 * MSG_QUERY of kind QUERY_MASKS, and its MSG_REPLY: the lengths of the prefixes by which
 * addresses are routed. It has no rows.
 */
#define MASKS_MAX         64
#define SFLOW_BATCHES_MAX 64 /* queries of sflow under way */
struct msg_masks {
	struct msg_query q; /* first: msg_free() gets its address */
	unsigned int n;
	struct mask_want {
		uint16_t vrf; /* number of the FIB; 0: table main */
		/*
		 * In the query an address. The receiver sets `len` to the length of the
		 * prefix by which it is routed, or `family` to 0: no route.
		 */
		struct prefix prefix;
	} of[MASKS_MAX];
};

/*
 * Return true for a bulk message. It waits while prompt messages are in the worker's
 * mailbox. Bulk messages never overtake each other.                           [any thread]
 */
static inline bool
msg_is_bulk(enum msg_type type)
{
	return type == MSG_FPM_BATCH || type == MSG_KERNEL_BATCH || type == MSG_QUIESCE ||
	       type == MSG_HELD;
}

/* Allocate a zeroed message of `size` octets; aborts if out of memory. */
void *msg_new(enum msg_type type, size_t size);

/* Free a message, and the arrays of a batch of events. */
void msg_free(struct msg *m);

#endif
