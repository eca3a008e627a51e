/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The internals of the rtnl thread. Private to rtnl/ and its tests.
 *
 *   events socket (multicast) --.
 *                                >-- pass.c (decode, leave out) -- batches -> rib
 *   dump socket -- dump.c ------'
 *                    |
 *   changes socket --'
 *
 * rtnl.c has the thread and decides when to dump. socket.c opens the sockets. Events and
 * dumps are never mixed: while a dump runs, events wait in their socket. They are newer
 * than the dump, or repeat its content.
 */
#ifndef RTNL_IMPL_H
#define RTNL_IMPL_H

#include <ev.h>
#include <libmnl/libmnl.h>

#include "base/log.h"
#include "base/rule.h"
#include "rtnl/rtnl.h"

#ifndef RTNLGRP_NEXTHOP
#define RTNLGRP_NEXTHOP 32
#endif

#define DUMP_BUFFER_BYTES (64u << 10) /* the kernel fills a message up to 32 KiB */
#define BURST             16u         /* datagrams per system call */
/* two families, 256 protocols, labels, next hops, rules, and some tables of rules */
#define JOBS_MAX 1000u

/*
 * Linux ends a dump, without an error, at a route whose message does not fit in a datagram:
 * 32 KiB with its header.
 */
#define ROUTE_LARGE_BYTES 32000u

#define NEW_LINKS 1024u

/* The tables that the rules of a family name, in ascending order. */
struct rule_tables {
	uint32_t *v, n;
};

/* A rule that names an interface by an alternative name. */
struct named_rule {
	struct rule rule;   /* with iif_index or oif_index */
	char device[2][16]; /* primary names of these two interfaces */
	bool shown;         /* the present dump has the rule */
};

struct named_rules {
	struct named_rule *v;
	uint32_t n, room;
};

/* An alternative name of an interface that is up. */
struct alt_name {
	uint32_t ifindex;
	char name[16], device[16];
};

struct alt_names {
	struct alt_name *v;
	uint32_t n, room;
};

enum dump_kind {
	DUMP_ROUTES,
	DUMP_NEXTHOPS,
	DUMP_RULES,
	DUMP_SPLIT, /* a lookup that shows if Linux has split the tables of IPv4 */
	/*
	 * Lookups that show if Linux uses table local, or main, whatever the rules of IPv6
	 * are.
	 */
	DUMP_LOCAL6,
	DUMP_MAIN6,
	DUMP_HAS_LABELS, /* a lookup that shows if the kernel has MPLS */
};

/* A link that had no carrier since it was made. */
struct new_link {
	uint32_t ifindex; /* 0: none */
	uint32_t era;     /* the link is new if this is r->new_link_era */
	bool was_up;
};

/* One dump to be made. */
struct dump_job {
	enum dump_kind kind;
	struct kernel_scope scope; /* DUMP_NEXTHOPS: 0; rules and lookups: the family */
};

struct rtnl {
	struct worker *w;
	struct rtnl_conf conf;
	char netns[256];
	int events, dumps, changes; /* sockets; -1: closed */
	ev_io events_io, dumps_io;
	ev_timer resync; /* the next dump of objects that may have been deleted silently */
	ev_timer cut_again; /* the next dump of all tables after Linux has cut one */
	ev_timer expiry;    /* the next route with a limited lifetime expires */
	uint8_t *buffer;    /* DUMP_BUFFER_BYTES, of the dump socket */
	uint8_t *burst;     /* receive buffer of the events socket */
	struct dump_job job[JOBS_MAX]; /* the dumps to be made */
	unsigned int n_jobs, at;       /* at == n_jobs: no dump runs */
	bool asked;                    /* the request for job[at] was sent */
	unsigned int n_answers; /* answers to job[at] that rib got since the last mark */
	uint32_t n_messages;    /* of the answer */
	bool many_deleted;      /* many routes were deleted during one of the answers */
	/* the tables changed while the kernel answered, or memory was out for a route */
	bool interrupted;
	bool local_shown; /* one of these answers has a route of table local */
	bool checking;    /* the request for job[at] is for table local alone */
	/*
	 * IPv4, IPv6: Linux ended the last dump of all tables before its end, or has sent a
	 * route that ends dumps. Then no route is removed because a dump does not show it.
	 */
	bool cut[2];
	bool has_large[2];  /* IPv4, IPv6: the last event about a large route added it */
	unsigned int tries; /* attempts at job[at] */
	uint32_t seq;       /* of the request */
	uint64_t dump_begin_ms, next_resync_ms;
	/* IPv4, IPv6: tables in which zebra's routes are wanted */
	struct rule_tables tables[2];
	bool all_nexthops; /* rib needs the objects of zebra, too */
	/* nlmsg_pid and nlmsg_seq of the last event about a next-hop object */
	uint32_t nexthop_pid, nexthop_seq;
	bool rules_only;        /* this dump has no job of all routes or of a protocol */
	bool whole;             /* this dump has all routes */
	bool starting;          /* this is a dump before the first wait of the thread */
	bool rules_due;         /* read the rules again: some have changed */
	bool large;             /* a walk of the kernel over its tables takes long */
	uint64_t n_routes_then; /* routes of rib when `large` was last decided */
	bool split4;            /* Linux looks up table local, then table main (IPv4) */
	bool local6, main6;     /* the last lookup used this table (IPv6) */
	bool no_labels;         /* the kernel has no MPLS */
	bool no_rules;    /* the kernel has no rules of the family of the present job */
	uint64_t n_shown; /* messages of the present dump */
	bool all_due;     /* read all tables again: events were lost, or memory was out */
	bool silent_due;  /* read objects again that may have been deleted silently */
	bool lives_due;   /* read routes with a limited lifetime again */
	bool has_dead;    /* the last dump, or a later event, has a dead next hop of IPv4 */
	struct new_link
		new_link[NEW_LINKS]; /* by ifindex; a collision forgets the older link */
	uint32_t new_link_era;
	/* Shortest lifetime of routes seen since the last dump; 0: none. */
	uint32_t expires_ms;
	uint32_t n_expired; /* expired routes in the present dump */
	uint32_t n_joined;  /* expired routes in the present dump with several next hops */
	uint32_t n_expired_was;    /* n_expired of the last dump */
	uint64_t expired_since_ms; /* CLOCK_MONOTONIC: when n_expired grew last */
	bool had_lives;            /* the kernel may have a route with a limited lifetime */
	/*
	 * CLOCK_MONOTONIC: start of the first dump of a series without a lifetime; 0: none
	 */
	uint64_t lifeless_since_ms;
	bool held[256];    /* rib may have routes of the protocol */
	bool mortal[256];  /* IPv6 routes of the protocol may have a limited lifetime */
	bool held_labels;  /* rib may have routes of labels */
	struct rule *rule; /* of the present job */
	uint32_t n_rules, room_rules;
	struct named_rules named;
	struct alt_names alt; /* as of the last event that was read */
	/* IPv4, IPv6: a rule has an interface that no longer has the name */
	bool names_lost[2];
	struct kernel_event ev[KERNEL_BATCH_MAX]; /* of the next batch */
	unsigned int n_ev;
	uint32_t hops_bytes; /* of the hops that they own */
	struct log_limit overrun_log, malformed_log, dump_log;
};

/* Add to a counter of kernel_status that this thread alone writes. */
static inline void
kernel_count(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_store_explicit(counter,
			      atomic_load_explicit(counter, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

/* --- socket.c                                                                 [rtnl] */

/* Open the sockets events, changes and dumps in the namespace. Returns 0 or -errno. */
int sockets_open(struct rtnl *r);
void sockets_close(struct rtnl *r);
/*
 * Open the socket of dumps in place of the present one. The kernel refuses a request
 * (EBUSY) while the socket has an answer that was not read to its end. Returns 0 or -errno.
 */
int dumps_open(struct rtnl *r);

/*
 * Attach the filter that drops events about routes of zebra's protocols. With `tables` it
 * drops them only in the tables main and local. If the kernel refuses the filter, it sends
 * these events, too, and the thread ignores them.
 */
void events_filter(struct rtnl *r, bool tables);

/*
 * Read waiting events, at most some thousand, and call `fn` for each message. Returns the
 * number of datagrams, 0 when none wait, or -ENOBUFS when events were lost.
 */
int events_read(struct rtnl *r, void (*fn)(struct rtnl *r, const struct nlmsghdr *nlh));

/* --- changes.c                                                                [rtnl] */

#define CHANGES_UNKNOWN UINT32_MAX

/* Begin to count the IPv6 routes that the kernel deletes. Returns 0 or -errno. */
int changes_begin(struct rtnl *r);
/*
 * End it. Returns the number of deleted routes; CHANGES_UNKNOWN: some were, or events were
 * lost.
 */
uint32_t changes_end(struct rtnl *r);

/* --- pass.c                                                                   [rtnl] */

/* Decode a message about a route or a next hop, and pass it on to rib if it is wanted. */
void pass_message(struct rtnl *r, const struct nlmsghdr *nlh, bool dump);
void pass_mark(struct rtnl *r, enum kernel_event_kind kind,
	       const struct kernel_scope *scope);
/* Send the collected events to rib. */
void pass_flush(struct rtnl *r);
/* Begin the list of rules; add a rule of a dump to it; send the list of `family` to rib. */
void pass_rules_begin(struct rtnl *r, uint8_t family);
void pass_rule(struct rtnl *r, const struct nlmsghdr *nlh);
void pass_rules_end(struct rtnl *r, uint8_t family);

/* --- new_link.c                                                               [rtnl] */

/*
 * Return true if a message RTM_NEWLINK or RTM_DELLINK shows that the kernel may have
 * deleted routes or next-hop objects without an event: the link is gone, down or without
 * carrier, and is not new. Every event of such a link counts: some come before the kernel
 * has deleted the routes of the link.
 */
bool link_may_have_lost(struct rtnl *r, const struct nlmsghdr *nlh);
/*
 * Return true if a message RTM_NEWLINK shows that Linux may use dead next hops of IPv4
 * again, because their link is up (fib_sync_up()). It sends no message about them. If the
 * link has an IPv4 address, rib uses them at once, without a dump.
 */
bool link_may_have_revived(const struct rtnl *r, const struct nlmsghdr *nlh);
/* Let no link count as new. */
void new_links_forget(struct rtnl *r);

/* --- tables.c                                                                 [rtnl] */

/*
 * Store the tables that the rules in r->rule name, and add dumps of the new and the removed
 * tables to the plan of the running dump.
 */
void tables_update(struct rtnl *r, uint8_t family);
/* Return true if a rule of the family names the table of the kernel. */
bool tables_have(const struct rtnl *r, uint8_t family, uint32_t table);
void tables_free(struct rtnl *r);

/* --- rule_names.c                                                             [rtnl] */

/* Begin a dump of the rules of a family. */
void rule_names_begin(struct rtnl *r, uint8_t family);
/*
 * Store in a rule of the dump the interfaces that it names by alternative names. Note in
 * `lacks` that its interface cannot be found.
 */
void rule_names_dumped(struct rtnl *r, const struct nlmsghdr *nlh, struct rule *rule);
/* Forget the rules of the family that the dump did not have. */
void rule_names_end(struct rtnl *r, uint8_t family);
/* Handle an event: a rule was added or deleted. */
void rule_names_event(struct rtnl *r, const struct nlmsghdr *nlh);
/*
 * Handle the event of a link. Returns true if it may change the interface of a rule: read
 * the rules again.
 */
bool rule_names_link(struct rtnl *r, const struct nlmsghdr *nlh);
/* Events were lost: forget the alternative names that events have told. */
void rule_names_lost(struct rtnl *r);
void rule_names_free(struct rtnl *r);

/* --- plan.c                                                                   [rtnl] */

/* Choose the routes that a planned dump reads. */
enum dump_extent {
	DUMP_CONNECTED, /* connected subnets and own addresses */
	DUMP_ALL,       /* all routes; rib gets the wanted ones */
};
void dump_plan(struct rtnl *r, enum dump_extent extent);
/*
 * Plan a dump of the protocols of which rib has routes. If the tables are large, plan a
 * dump of all routes instead. The kernel walks over a whole table even to find the routes
 * of one protocol, and while it finds none, no other thread runs on this CPU. A walk over
 * 1,000,000 routes takes 0.3 s.
 */
void dump_plan_held(struct rtnl *r);
/*
 * Plan a dump of the IPv6 protocols whose routes may have a limited lifetime, or of all
 * IPv6 routes if tables are large.
 */
void dump_plan_mortal(struct rtnl *r);
/* Add a dump to the plan: of next-hop objects, or of the routes of one table. */
void dump_add_nexthops(struct rtnl *r);
void dump_add_table(struct rtnl *r, uint8_t family, uint32_t table);
/*
 * Plan a dump of the rules, and of the tables that rules name now and did not name before,
 * or no longer name.
 */
void dump_plan_rules(struct rtnl *r);
/* --- dump.c                                                                   [rtnl] */

/*
 * Read the answers that have arrived, and start the next job. Returns 1 when all jobs are
 * done, 0 when the kernel has more, or -errno.
 */
int dump_continue(struct rtnl *r);

static inline bool
dump_runs(const struct rtnl *r)
{
	return r->at < r->n_jobs;
}

#endif
