/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state that the files of rib/ (and its tests) share. [rib] owns all of it: no other
 * thread reads these structs. The data for other threads is in fib/fib.h.
 *
 *     struct route --zslot, kslot--> struct slot --legs--> struct leg --> struct link
 *     struct nh (id of zebra) --slot--^                        `-------> struct adj
 *
 * A slot is one entry of fib->group: the value that prefixes have in the tries.
 *
 * struct rib consists of one struct for each file that owns a part of the state; the header
 * of that file declares it. A file calls only files of lines below its own, and it includes
 * the header of each file that it calls. No file calls a file that calls it back.
 *
 *     rib.c                        the thread: passes messages down, ends a round with a commit
 *     restore.c                    fills the tables from the last daemon's checkpoint
 *     commit.c                     publishes words and tries to forwarders
 *     query.c                      answers the ui
 *     label_row.c, link_row.c, masks.c, packed.c, sid_row.c     answers for query.c
 *     route_row.c                  a route as a row of an answer
 *     encap_row.c, rule_row.c      next hops and rules in rows
 *     audit.c, resync.c, sweep.c   walk over all routes, a slice a round, and withdraw or repair
 *     zebra.c                      applies the events of an FPM batch
 *     session.c                    begins and ends sessions of zebra
 *     rules.c                      policy routing
 *     link_change.c                applies changes of the kernel's links
 *     early.c, kernel.c, words.c   routes before their next hop; the kernel's routes; group
 *                                  words
 *     content.c, feedback.c        slots by content; results that zebra gets
 *     leg.c, route.c               tie slots to links and adjacencies, and routes to slots
 *     view.c                       FIBs with a choice of the routes of a table
 *     local.c                      table local in the FIBs of VRFs
 *     sid.c, sid_number.c          end points of SRv6
 *     encap.c, labels.c, mirror.c, nexthop.c, vrf.c
 *     adj.c, egress.c, stack.c
 *     checkpoint.c, replay.c, slot.c, table_count.c
 *     kroute.c, prune.c
 *     group.c, link.c, nh_list.c, reclaim.c, routes.c, source.c
 *     index.c, order.c, resync_request.c
 *
 * A lower file does not call a higher one when it has work for it. It sets a field in
 * struct rib, such as words.due, resync or feedback.resend_at, and the higher file reads
 * the field later. reclaim.c runs a function that commit.c hands to it. checkpoint.c,
 * kroute.c, link.c, routes.c, nh_list.c, group.c, order.c and index.c do not use struct
 * rib.
 */
#ifndef RIB_IMPL_H
#define RIB_IMPL_H

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
#include "rib/commit.h"
#include "rib/content.h"
#include "rib/early.h"
#include "rib/encap.h"
#include "rib/feedback_state.h"
#include "rib/index.h"
#include "rib/labels.h"
#include "rib/leg.h"
#include "rib/link.h"
#include "rib/local.h"
#include "rib/nexthop.h"
#include "rib/kroute.h"
#include "rib/prune.h"
#include "rib/query.h"
#include "rib/reclaim.h"
#include "rib/resync_request.h"
#include "rib/rib.h"
#include "rib/mirror.h"
#include "rib/routes.h"
#include "rib/rules.h"
#include "rib/sid.h"
#include "rib/sid_number.h"
#include "rib/session.h"
#include "rib/slot.h"
#include "rib/source.h"
#include "rib/stack.h"
#include "rib/table_count.h"
#include "rib/vrf.h"
#include "rib/nh_list.h"
#include "rib/words.h"

#define RIB_SLICE 4096u /* routes that a background walk reads in one round */
/*
 * A long round commits after this number of events: they take half a millisecond and are
 * still in the cache.
 */
#define RIB_COMMIT_EVENTS 1024u

struct ckpt;

struct rib_counters {
	uint64_t commits, commit_nomem, route_nomem;
	uint64_t ignored_kernel, ignored_linklocal, del_unknown, nh_del_unknown;
	uint64_t trie_writes; /* prefixes staged: a measure of the cost */
	uint64_t word_writes; /* group words published */
	uint64_t adopted;     /* slots that a newer session took over */
	uint64_t flows_moved; /* route changes that moved flows of next hops that stay */
	uint64_t sweeps, swept_routes;
	uint64_t kernel_swept;           /* routes of the kernel removed without an event */
	uint64_t restored, restore_lost; /* routes of the checkpoint, at the start */
	uint64_t restored_kernel;        /* restored routes of the kernel */
	uint64_t restore_refused;        /* checkpoints discarded: 0 or 1 */
};

struct rib {
	struct rib_conf conf;
	struct worker *worker;
	struct fib *fib;
	uint64_t (*clock_ms)(void);
	bool stopping; /* send no messages */

	/* The state of zebra and of the kernel. */
	struct rib_session session;
	struct rib_tables tables;
	struct rib_table_counts table_counts;
	struct rib_nexthops nhs;
	struct rib_early early;
	struct rib_links links;
	struct rib_kroutes kroutes;
	struct rib_rules rules;
	struct rib_sources sources;
	struct rib_locals locals;

	/* The same state as forwarders need it. */
	struct rib_slots slots;
	struct rib_contents contents;
	struct rib_legs legs;
	struct rib_adjs adjs;
	struct rib_prunes prunes;
	struct rib_stacks stacks;
	struct rib_sids sids;
	struct rib_sid_numbers sid_numbers;
	struct rib_encaps encaps;
	struct rib_labels labels;
	struct rib_vrfs vrfs;

	/* Changes that are not published yet, and memory that is not freed yet. */
	struct rib_pending pending;
	struct rib_words words;
	struct rib_resync resync;
	struct rib_reclaims reclaims;
	struct rib_feedback feedback;
	struct rib_queries queries;
	struct ckpt *ckpt; /* NULL: no checkpoint is written */
	struct mirror_missed missed;

	struct rib_counters count;
	struct nh_list scratch; /* next hops that a function collects for its own use */
	atomic_bool had_nomem;  /* W:rib R:main  a route could not get memory */
	ev_timer tick, alive;
	ev_idle more;
};

/*
 * Create a rib without a thread (for rib_setup() and tests; in rib.c). Return NULL if
 * out of memory.
 */
struct rib *rib_new(struct worker *w, const struct rib_conf *conf);
/* Handle and free one message. */
void rib_on_msg(struct rib *rib, struct msg *m);
/*
 * End a round: continue the walks, then commit. Return true if a walk needs another round
 * at once.
 */
bool rib_round(struct rib *rib);

#endif
