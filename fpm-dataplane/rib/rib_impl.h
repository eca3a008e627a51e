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
#include "rib/adj.h"
#include "rib/content.h"
#include "rib/group.h"
#include "rib/index.h"
#include "rib/leg.h"
#include "rib/link.h"
#include "rib/own.h"
#include "rib/reclaim.h"
#include "rib/resync.h"
#include "rib/rib.h"
#include "rib/route.h"
#include "rib/routes.h"
#include "rib/session.h"
#include "rib/slot.h"
#include "rib/ways.h"
#include "rib/words.h"

#define RIB_SLICE 4096u /* routes looked at in one round of a background walk */
/* After so many a long round commits, half a millisecond and still in the cache. */
#define RIB_COMMIT_EVENTS 1024u

struct ckpt;

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

	struct rib_links links;
	struct rib_legs legs;
	struct rib_own own;
	struct rib_adjs adjs;
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

	struct rib_session session;
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

/* commit.c */
void rib_commit(struct rib *rib);
/* Teardown: run all lists of reclaim.h, whether or not their grace period is over. */
void commit_reclaim_all(struct rib *rib);

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
