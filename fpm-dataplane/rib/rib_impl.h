/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of rib/ (and its tests) share. All of it is [rib]'s own: no other thread
 * looks at any of these structs; what others read is in fib/fib.h.
 *
 *     struct route --zslot, kslot--> struct slot --legs--> struct leg --> struct link
 *     struct nh (id of zebra) --slot--^                        `-------> struct adj
 *
 * A slot is one entry of fib->group: the value that prefixes carry in the tries.
 *
 * struct rib consists of one struct for each file that owns a part of the state; the header of
 * that file declares it. A file calls only files of lines below its own, and it includes the
 * header of each file that it calls. No file calls a file that calls it back.
 *
 *     rib.c                        the thread: passes messages down, ends a round with a commit
 *     restore.c                    fills the tables from the last daemon's checkpoint
 *     commit.c                     publishes words and tries to forwarders
 *     query.c                      answers the ui
 *     audit.c, resync.c, sweep.c   walk over all routes, a slice a round, and withdraw or repair
 *     zebra.c                      applies the events of an FPM batch
 *     session.c                    begins and ends sessions of zebra
 *     early.c, kernel.c, words.c   routes before their next hop; links, addresses; group words
 *     content.c, feedback.c        which content has which slot; what zebra is told
 *     leg.c, route.c               tie slots to links and adjacencies, and routes to slots
 *     adj.c, mirror.c, nexthop.c, vrf.c
 *     checkpoint.c, own.c, slot.c, tally.c
 *     group.c, link.c, reclaim.c, routes.c, ways.c
 *     index.c, order.c
 *
 * A lower file does not call a higher one when it has work for it. It leaves a note in struct
 * rib, such as words.due, resync or feedback.resend_at, and the higher file looks for the note
 * in its turn. reclaim.c runs a function that commit.c hands to it. checkpoint.c, own.c,
 * link.c, routes.c, ways.c, group.c, order.c and index.c know nothing of struct rib.
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
#include "rib/commit.h"
#include "rib/content.h"
#include "rib/early.h"
#include "rib/feedback.h"
#include "rib/index.h"
#include "rib/leg.h"
#include "rib/link.h"
#include "rib/nexthop.h"
#include "rib/own.h"
#include "rib/query.h"
#include "rib/reclaim.h"
#include "rib/resync.h"
#include "rib/rib.h"
#include "rib/routes.h"
#include "rib/session.h"
#include "rib/slot.h"
#include "rib/table_count.h"
#include "rib/vrf.h"
#include "rib/nh_list.h"
#include "rib/words.h"

#define RIB_SLICE 4096u /* routes looked at in one round of a background walk */
/* After so many a long round commits, half a millisecond and still in the cache. */
#define RIB_COMMIT_EVENTS 1024u

struct ckpt;

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

	/* What zebra and the kernel say. */
	struct rib_session session;
	struct rib_tables tables;
	struct rib_table_counts table_counts;
	struct rib_nexthops nhs;
	struct rib_early early;
	struct rib_links links;
	struct rib_own own;

	/* What it means for packets. */
	struct rib_slots slots;
	struct rib_contents contents;
	struct rib_legs legs;
	struct rib_adjs adjs;
	struct rib_vrfs vrfs;

	/* What is on its way to forwarders, and back. */
	struct rib_pending pending;
	struct rib_words words;
	struct rib_resync resync;
	struct rib_reclaims reclaims;
	struct rib_feedback feedback;
	struct rib_queries queries;
	struct ckpt *ckpt; /* NULL: none is kept */

	struct rib_counters count;
	struct nh_list scratch;
	atomic_bool had_nomem; /* W:rib R:main  some route found no memory */
	ev_timer tick, alive;
	ev_idle more;
};

/* rib.c: without a thread, for tests. Returns NULL when memory is out. */
struct rib *rib_new(struct worker *w, const struct rib_conf *conf);
/* One message; the callee owns it. */
void rib_on_msg(struct rib *rib, struct msg *m);
/* End of a round: walks, commit. Returns true when a walk wants another round at once. */
bool rib_round(struct rib *rib);

#endif
