/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * msg: all that threads say to one another, on one screen.
 *
 * A message is malloc'ed by the sender and owned by the receiver, who frees it with
 * msg_free() or sends it on. Never a pointer into the sender's tables. "Bound" says what
 * keeps the number in flight finite.
 */
#ifndef BASE_MSG_H
#define BASE_MSG_H

#include <stdbool.h>
#include <stdint.h>
#include <urcu/wfcqueue.h>

#include "base/prefix.h"

enum msg_type {
	MSG_FPM_BATCH, /* fpm -> rib     decoded events, in order. Bound: fpm's byte account */
	MSG_LINK, /* neigh -> rib, punt  an interface of the kernel changed. Bound: kernel */
	MSG_ADDR,      /* neigh -> rib   a local address came or went. Bound: kernel */
	MSG_VRF,       /* neigh -> rib   a VRF of the kernel came or went. Bound: kernel */
	MSG_ADJ_WATCH, /* rib -> neigh   keep adjacency `adj` resolved. Bound: next hops */
	MSG_ADJ_READY, /* neigh -> rib   watched, and what the kernel knows of it is there */
	MSG_ADJ_UNWATCH, /* rib -> neigh   forget it; answered with MSG_ADJ_FREED */
	MSG_ADJ_FREED,   /* neigh -> rib   neigh writes slot `adj` no more */
	MSG_ADJ_STATE,   /* neigh -> rib   a watched neighbor failed or came (back) */
	MSG_GLEAN, /* punt -> neigh  packets wait for (ifidx, addr). Bound: hold table */
	MSG_GLEAN_OVER, /* punt -> neigh  they wait no more, and need no answer */
	MSG_NEIGH,      /* neigh -> punt  (ifidx, addr) resolved or failed. Bound: gleans */
	MSG_TAP, /* neigh -> punt, manage  a port has a new TAP. Bound: one a port a second */
	MSG_FEEDBACK, /* rib -> fpm    routes that are forwarded by now. Bound: the queue */
	MSG_QUIESCE, /* main -> rib  behind the last batch: a successor reads the checkpoint */
	MSG_REPLAY, /* ui, rib -> fpm end the session, so that zebra comes and says all again */
	MSG_HELD, /* fpm -> rib  a QUERY_HOLD, obeyed; behind the batch that rib writes down */
	MSG_SETTINGS, /* manage -> rib, fpm  numbers to go by from now on. Bound: requests */
	MSG_PORT,     /* manage -> neigh, punt  a port came or goes. Bound: one, awaited */
	MSG_RECLAIM, /* urcu -> rib, neigh, trace  a grace period is over. Bound: one a commit */
	MSG_QUERY, /* ui, trace -> rib, neigh; ui -> trace, manage, fpm  a slice, please. Bound: clients */
	MSG_REPLY, /* rib, neigh, trace, manage -> who asked  the slice */
};

struct msg {
	struct cds_wfcq_node node; /* W:sender, then the mailbox */
	enum msg_type type;
};

/* MSG_LINK: state of one kernel interface in the control namespace. */
struct msg_link {
	struct msg m;
	uint32_t ifindex;
	uint16_t ifidx; /* our number of it when it is a port's or a VLAN on one, else 0 */
	bool gone;      /* interface deleted */
	bool up;        /* admin up, and (a port's) carrier: usable as an egress */
	uint16_t vrf;   /* the interface is a VRF's own: its number (MSG_VRF), else 0 */
	char name[16];
};

/* MSG_ADDR: `addr` is ours on ifindex; the connected subnet is `subnet`. */
struct msg_addr {
	struct msg m;
	uint32_t ifindex;
	struct prefix subnet; /* of the address, or of the peer on a point-to-point link */
	struct ipaddr addr;
	uint32_t table; /* of the VRF that ifindex is in; 0: main */
	bool gone;
};

/* MSG_VRF: table `table` is to have a FIB, published as fib->vrf[number]; or no more. */
struct msg_vrf {
	struct msg m;
	uint32_t table;
	uint16_t number; /* 1..FIB_VRF_NONE-1 */
	bool gone;
	char name[16]; /* of the VRF, the first of those that share the table */
};

/* MSG_ADJ_WATCH, _READY, _UNWATCH, _FREED, _STATE. Slot numbers are rib's half of fib->adj. */
struct msg_adj {
	struct msg m;
	uint32_t adj;
	uint32_t ifindex;
	uint16_t ifidx;
	uint8_t family;
	struct ipaddr addr;
	bool alive; /* _STATE: resolved, or still being tried; false: the kernel gave up */
};

/* MSG_GLEAN, MSG_GLEAN_OVER, MSG_NEIGH: an on-link neighbor. */
struct msg_neigh {
	struct msg m;
	uint16_t ifidx;
	uint8_t family;
	struct ipaddr addr;
	bool resolved; /* MSG_NEIGH: false means the kernel gave up */
};

/* MSG_TAP: the old one was deleted; the port's descriptor leads to this one by now. */
struct msg_tap {
	struct msg m;
	uint32_t ifindex;
	uint16_t ifidx;
};

/* MSG_RECLAIM: `fn(arg)` in the owner's thread. */
struct msg_reclaim {
	struct msg m;
	void (*fn)(void *owner, void *arg);
	void *arg;
};

/* MSG_QUIESCE: `done` is true when the checkpoint stands still, until one comes without it. */
struct msg_quiesce {
	struct msg m;
	_Atomic bool *done; /* main's, for as long as it lives; NULL: resume */
};

struct worker;
struct json_t;

enum query_kind {
	QUERY_ROUTES,
	QUERY_NEXTHOPS,
	QUERY_NEIGHBORS,
	QUERY_SUMMARY,
	QUERY_FIB, /* tries, of main, then of VRFs */
	QUERY_VRFS,
	QUERY_INTERFACES,    /* to neigh */
	QUERY_NEIGH_SUMMARY, /* to neigh: how many neighbors, by family and state */
	QUERY_AUDIT,         /* FIB against RIB; `repair` */
	QUERY_WATCH,         /* to trace: one of port/watch.h */
	QUERY_MANAGE,        /* to manage: one of base/msg_manage.h */
	QUERY_HOLD,          /* to fpm: one of base/fpm_event.h; rib replies */
	QUERY_BREAK,         /* tests only: make `breaking` of `prefix` wrong */
};

enum query_break { BREAK_NOTHING, BREAK_ROUTE, BREAK_TABLE, BREAK_GROUP };

/*
 * MSG_QUERY and its MSG_REPLY are one object that travels to and fro. The owner appends at
 * most `max` rows (JSON objects; dist/openapi.yaml has their keys), moves the cursor, sets
 * `done` at the end, and sends it back to `from`.
 */
struct msg_query {
	struct msg m;
	enum query_kind kind;
	struct worker *from; /* where the reply goes */
	void *client;        /* ui's own; not looked at by the owner */
	bool has_prefix;     /* only this prefix ... */
	bool longest;        /* ... or the longest match of its address */
	bool all_tables;
	uint16_t
		vrf; /* routes: of this VRF only; 0: of main, and of others with all_tables */
	bool repair;
	uint8_t breaking; /* enum query_break */
	uint8_t family;   /* 4, 6 or 0 for both */
	struct prefix prefix;
	unsigned int max;
	/* The owner's cursor; zero at first. */
	uint64_t cursor[8];
	bool done;
	struct json_t *rows; /* array; the receiver's */
};

/* Does it wait while others are there? Those that do never overtake each other.  [any thread] */
static inline bool
msg_is_bulk(enum msg_type type)
{
	return type == MSG_FPM_BATCH || type == MSG_QUIESCE || type == MSG_HELD;
}

/* Allocate a zeroed message of `size` octets; aborts when memory is out. */
void *msg_new(enum msg_type type, size_t size);

/* Free a message and what a batch of FPM events still holds. */
void msg_free(struct msg *m);

#endif
