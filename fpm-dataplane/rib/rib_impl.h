/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of rib/ (and its tests) share. All of it is [rib]'s own: no other thread
 * looks at any of these structs; what others read is in fib/fib.h.
 *
 *     struct route --zslot, kslot--> struct slot --legs--> struct leg --> struct link
 *     struct nh (id of zebra) --slot--^                        `-------> struct adj
 *
 * A slot is one entry of fib->group: the value that prefixes carry in the tries.
 */
#ifndef RIB_RIB_IMPL_H
#define RIB_RIB_IMPL_H

#include <assert.h>
#include <ev.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <urcu/list.h>
#include <urcu/urcu-qsbr.h>

#include "base/fpm_event.h"
#include "base/log.h"
#include "base/msg.h"
#include "base/tsan.h"
#include "base/worker.h"
#include "fib/fib.h"
#include "rib/content.h"
#include "rib/group.h"
#include "rib/index.h"
#include "rib/reclaim.h"
#include "rib/resync.h"
#include "rib/rib.h"
#include "rib/route.h"
#include "rib/routes.h"
#include "rib/slot.h"
#include "rib/ways.h"
#include "rib/words.h"

#define RIB_SLICE 4096u /* routes looked at in one round of a background walk */
/* After so many a long round commits, half a millisecond and still in the cache. */
#define RIB_COMMIT_EVENTS 1024u

struct ckpt;

/* --- slots ------------------------------------------------------------------------- */

struct slot;

/* A way of a slot, tied to the link and the adjacency it needs. */
struct leg {
	struct way way;
	uint32_t adj;      /* 0: none */
	bool starved;      /* wants one, and there was none left */
	struct link *link; /* NULL: needs none, or its interface is not known */
	struct slot *slot;
	struct cds_list_head on_link;  /* in link->legs, when link */
	struct cds_list_head on_adj;   /* in adj->legs, when adj; in rib->starved */
	struct cds_list_head floating; /* in rib->floating: gateway without interface */
};

/* --- nexthop ids (nexthop.c) ------------------------------------------------------- */

struct member {
	struct nh *nh;    /* the singleton */
	struct nh *group; /* that names it */
	uint32_t weight;
	struct cds_list_head in; /* nh->member_of */
};

struct nh {
	uint32_t id;
	uint32_t number; /* in rib->nh */
	uint32_t slot;   /* first of its slots, one an MTU class; 0: no route names it */
	uint32_t n_member;
	bool known;  /* announced in this session */
	bool absent; /* deleted while in use: last content stays in force */
	bool is_group;
	bool doomed;        /* in rib->nh_doomed */
	bool means_nothing; /* early.c's judgement ... */
	uint64_t judged;    /* ... when rib->ids_turn was this */
	struct way way;     /* of a singleton */
	struct member *member;
	struct cds_list_head member_of;
};

/* A route whose id means nothing yet: it keeps the way it had (early.c). */
struct early {
	struct route *route; /* NULL: entry is free */
	uint32_t nhid;
	uint16_t mtu_class;
};

/* --- links, adjacencies ------------------------------------------------------------ */

struct link {
	uint32_t ifindex;
	uint32_t number;
	uint16_t ifidx, vrf; /* number of it as a port of ours, as a VRF; 0: it is none */
	bool known, up;
	char name[16];
	struct cds_list_head legs;
};

enum adj_state { ADJ_FREE, ADJ_WATCHED, ADJ_UNWATCHED };

struct adj {
	uint32_t ifindex;
	uint32_t refs;
	uint8_t family;
	uint8_t state;
	bool alive;
	bool asked; /* neigh has not answered MSG_ADJ_WATCH yet */
	struct ipaddr addr;
	struct cds_list_head legs;
};

struct own;        /* an own address as the kernel has it (kernel.c) */
struct own_subnet; /* and the subnet that it is in */

/* --- struct rib ------------------------------------------------------------------------ */

struct rib_counters {
	uint64_t commits, commit_nomem, route_nomem;
	uint64_t ignored_kernel, ignored_linklocal, del_unknown, nh_del_unknown;
	uint64_t trie_writes; /* prefixes staged: what a change costs */
	uint64_t word_writes; /* group words published */
	uint64_t adopted;     /* slots taken over by a newer session's id */
	uint64_t sweeps, swept_routes;
	uint64_t restored, restore_lost; /* routes of the checkpoint, at start */
	uint64_t restore_refused;        /* checkpoints discarded: 0 or 1 */
};

struct session {
	uint32_t gen, nl_pid;
	bool connected;
	bool restarted;      /* another zebra than the one before */
	bool replaying;      /* of main: its end is not known yet */
	bool vrfs_replaying; /* of all tables: theirs is not known yet */
	bool sweeping; /* end known, stale routes are being taken out: main's, then VRFs' */
	bool sentinel; /* seen in this generation, at ... */
	uint64_t sentinel_ms, up_ms, last_event_ms, done_ms;
	uint64_t last_other_ms; /* zebra spoke of a route of another table than main */
	uint32_t n_before;      /* routes of zebra when it came: to be confirmed or swept */
	uint64_t n_events, n_routes; /* the sentinel not counted */
	uint64_t swept, swept_vrf;   /* the latter are not in n_before */
	uint32_t sweep_at;
};

struct rib {
	struct rib_conf conf;
	struct worker *worker;
	struct fib *fib;
	uint64_t (*clock_ms)(void);
	bool stopping; /* send nothing any more */

	struct rib_tables tables;
	struct vrf *vrf[FIB_VRF_MAX]; /* by number, from 1; NULL: none */
	uint32_t n_vrf, n_vrf_published;
	struct hidx vrf_by_table;
	struct vec32 vrf_staged;     /* numbers of those with something to commit */
	struct vrf_wish *vrf_wishes; /* those whose FIB found no memory */
	uint32_t n_zebra[2];         /* IPv4, IPv6 */
	uint32_t n_labels;           /* of tables.n_beside */
	uint32_t stale;              /* of n_zebra and n_labels not seen in session.gen */
	uint32_t stale_other;        /* the same of all tallies */
	struct tally *tally;         /* by number, from 1 */
	uint32_t tally_high, tally_cap;
	struct vec32 tally_unused;
	struct hidx tally_by_table;

	struct rib_slots slots;
	struct rib_contents contents;

	struct nh **nh;
	uint32_t nh_high, nh_cap, n_nh;
	struct vec32 nh_free, nh_doomed;
	bool nh_dooming;
	struct hidx nh_by_id;

	struct early *early; /* by number, from 1 */
	uint32_t early_high, early_cap, n_early;
	struct vec32 early_unused;
	struct hidx early_by_route;
	bool ids_changed;  /* since the last early_bind() */
	uint64_t ids_turn; /* counts changes of ids, from 1 */

	struct link **link;
	uint32_t link_high, link_cap;
	struct vec32 link_free;
	struct hidx link_by_ifindex;
	struct cds_list_head floating;
	struct cds_list_head starved; /* legs without an adjacency for want of room */

	struct own *own; /* by number, from 1 */
	uint32_t own_high, own_cap;
	struct vec32 own_unused;
	struct hidx own_by_addr;
	struct own_subnet *subnet; /* by number, from 1 */
	uint32_t subnet_high, subnet_cap;
	struct vec32 subnet_unused;
	struct hidx subnet_by_prefix, subnet_by_special[2];

	struct adj *adj; /* as many as fib->adj_hosts */
	bool adj_freed;  /* in this round */
	uint32_t adj_high, n_adj;
	uint32_t n_asked;  /* adjacencies that a commit waits for */
	uint64_t asked_ms; /* since when there are some */
	struct vec32 adj_free;
	uint32_t adj_free_at;
	struct hidx adj_by_key;

	struct rib_words words;
	bool staged[2];
	bool commit_failed; /* the last one, for a lack of memory: tries are behind */
	struct rib_resync resync;
	atomic_bool short_once; /* W:rib R:main  some route found no memory */
	bool any_foreign;       /* and routes of VRFs that went: tally.h */
	uint32_t n_events;      /* since the last commit */
	uint64_t words_before;  /* count.word_writes at the last commit */
	uint64_t oldest_rx_ms;  /* of those: when fpm handed the first over; 0: none */
	struct rib_reclaims reclaims;

	struct session session;
	struct rib_counters count;
	struct ckpt *ckpt; /* NULL: none is kept */

	struct msg_query **query; /* to be answered after the commit. Bound: clients */
	uint32_t n_query, cap_query;

	struct said *said; /* routes to be acknowledged after the commit */
	uint32_t n_said, cap_said;
	uint32_t retell_at; /* 0: no route was said to have failed for a lack of memory */

	struct ways scratch;

	ev_timer tick, alive;
	ev_idle more;
};

/* rib.c: without a thread, for tests. Returns NULL when memory is out. */
struct rib *rib_new(struct worker *w, const struct rib_conf *conf);
/* One message; the callee owns it. */
void rib_on_msg(struct rib *rib, struct msg *m);
/* End of a round: walks, commit. Returns true when a walk wants another round at once. */
bool rib_round(struct rib *rib);

/* zebra.c: what FPM says. */
void zebra_batch(struct rib *rib, const struct msg_fpm_batch *b);
void zebra_withdraw(struct rib *rib, struct route *r);

/* nexthop.c */
void nh_upsert(struct rib *rib, const struct fpm_event *ev);
void nh_delete(struct rib *rib, uint32_t id);
struct nh *nh_find(const struct rib *rib, uint32_t id);
struct nh *nh_get(struct rib *rib, uint32_t id);
void nh_ways(struct rib *rib, const struct nh *nh, uint16_t mtu_class, struct ways *out);
void nh_maybe_free(struct rib *rib, struct nh *nh);
void nhs_free(struct rib *rib);

/* early.c */
/* Is `nhid` to be waited for by `r` (NULL: no such route), which then stays as it is? */
bool early_put(struct rib *rib, struct route *r, uint32_t nhid, uint16_t mtu_class);
void early_forget(struct rib *rib, const struct route *r); /* it means something else now */
enum early_due {
	EARLY_KNOWN, /* those whose id is known by now */
	EARLY_MAIN,  /* and all others that are replayed with main */
	EARLY_ALL,
};
void early_bind(struct rib *rib, enum early_due due);
void early_clear(struct rib *rib);
void early_free(struct rib *rib);

/* link.c */
struct link *rib_link_find(const struct rib *rib, uint32_t ifindex);
void rib_link_event(struct rib *rib, const struct msg_link *m);
void leg_attach(struct rib *rib, struct leg *leg);
void leg_detach(struct rib *rib, struct leg *leg);
void legs_float(struct rib *rib); /* connected subnets changed */
void legs_feed(struct rib *rib);  /* there are adjacencies again for who had none */
void links_free(struct rib *rib);

/* In the order of preference: a slot uses the best class that it has. */
enum leg_class {
	LEG_ALIVE,
	LEG_FAILED, /* the neighbour does not answer; packets make the kernel try again */
	LEG_SPECIAL,
	LEG_FOREIGN,
	LEG_ENCAP,
	LEG_DOWN,
	LEG_UNRESOLVED,
};
enum leg_class leg_path(const struct rib *rib, const struct leg *leg, fib_path *path);

/* adj.c. Is it there, or room for it? */
bool adj_is_to_be_had(const struct rib *rib, const struct link *link, uint8_t family,
		      const struct ipaddr *addr);
uint32_t adj_get(struct rib *rib, const struct link *link, uint8_t family,
		 const struct ipaddr *addr);
void adj_put(struct rib *rib, uint32_t number);
void adj_event_state(struct rib *rib, const struct msg_adj *m);
void adj_event_freed(struct rib *rib, const struct msg_adj *m);
void adj_event_ready(struct rib *rib, const struct msg_adj *m);
/* Is neigh still to say what it knows of a new adjacency? */
bool adj_awaited(const struct rib *rib);

/* kernel.c */
void rib_addr_event(struct rib *rib, const struct msg_addr *m);
void own_link_changed(struct rib *rib, uint32_t ifindex, bool gone);
void own_free(struct rib *rib);
/* The one interface whose connected subnet covers `addr` best; 0: none or several. */
uint32_t own_ifindex_of(const struct rib *rib, uint8_t family, const struct ipaddr *addr);

/* commit.c */
void rib_commit(struct rib *rib);
/* Teardown: run all lists of reclaim.h, whether or not their grace period is over. */
void commit_reclaim_all(struct rib *rib);

/* sweep.c */
void session_up(struct rib *rib, uint32_t gen, uint32_t nl_pid);
void session_down(struct rib *rib);
void session_event(struct rib *rib, const struct fpm_event *ev);
bool sweep_round(struct rib *rib); /* true: more at once */
/* Of main, and of VRFs. A word of dist/openapi.yaml; milliseconds, -1: not in sight. */
const char *session_phase(const struct rib *rib);
const char *session_vrf_phase(const struct rib *rib);
int64_t sweep_in_ms(const struct rib *rib, uint64_t now_ms);
int64_t sweep_vrfs_in_ms(const struct rib *rib, uint64_t now_ms);

/* feedback.c */
void feedback_put(struct rib *rib, const struct route *r);         /* zebra has sent it */
void feedback_refuse(struct rib *rib, const struct fpm_event *ev); /* not even kept */
/* A slice, when there is memory again, of all routes. Returns true when there are more. */
bool feedback_retell(struct rib *rib);
void feedback_seal(struct rib *rib); /* all so far is committed */
void feedback_send(struct rib *rib, struct msg_feedback *m);

/* audit.c */
void audit_slice(struct rib *rib, struct msg_query *q);
void audit_break(struct rib *rib, struct msg_query *q);

/* query.c: what is said is what forwarders have, so questions wait for the commit. */
void query_put(struct rib *rib, struct msg_query *q);
void query_answer_all(struct rib *rib);

#include "rib/tally.h"
#include "rib/vrf.h"

#endif
