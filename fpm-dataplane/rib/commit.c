/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Commits: publish changed group words and tries to forwarders. [rib]
 *
 * A commit starts when neigh has filled the adjacencies that are new in it (adj.c). Until
 * then the published state stays, except for changes of links and neighbors (words.c). A
 * commit publishes the group words first, then the tries, so that no trie leads to a word
 * that is not written. A slot that lost its last route is retired only when the published
 * trie no longer names it. Replaced memory waits for its grace period in a list of
 * reclaim.h.
 *
 * When a trie runs out of memory, forwarders use the published state. No slot is freed that
 * the published state may still name, and the next rounds try again.
 */
#include "rib/commit.h"

#include <stdlib.h>

#include "base/clock.h"
#include "rib/adj.h"
#include "rib/checkpoint.h"
#include "rib/content.h"
#include "rib/encap.h"
#include "rib/early.h"
#include "rib/feedback.h"
#include "rib/index.h"
#include "rib/labels.h"
#include "rib/local.h"
#include "rib/query.h"
#include "rib/reclaim.h"
#include "rib/impl.h"
#include "rib/route.h"
#include "rib/rules.h"
#include "rib/sid.h"
#include "rib/sid_number.h"
#include "rib/slot.h"
#include "rib/vrf.h"
#include "rib/egress.h"
#include "rib/words.h"

static bool
commit_tries(struct rib *rib)
{
	const struct fib *fib = rib->fib;
	bool all = true;

	for (unsigned int v = 0; v < 2; v++) {
		bool left = false;

		/* A copy that is complete already costs nothing. */
		for (unsigned int c = 0; rib->pending.staged[v] && c < fib->n_copies; c++) {
			if (poptrie_commit(fib_trie(&fib->copy[c], v == 0 ? 4 : 6)) == 0)
				continue;
			rib->count.commit_nomem++;
			route_log_nomem("commit", rib->count.commit_nomem);
			left = true;
		}
		rib->pending.staged[v] = left;
		all &= !left;
	}
	if (vrfs_commit(rib) == 0)
		return all;
	rib->count.commit_nomem++;
	route_log_nomem("commit", rib->count.commit_nomem);
	return false;
}

/* Retire the slots that no route names. After this commit no reader can find them. */
static void
slots_retire_idle(struct rib *rib)
{
	for (uint32_t i = 0; i < rib->slots.idle.n; i++) {
		struct slot *s = slot_at(&rib->slots, rib->slots.idle.v[i]);

		s->idle = false;
		if (s->refs != 0)
			continue; /* a route uses the slot again */
		slot_retire(rib, s);
		vec32_push(&reclaim_open(rib)->slots, s->number);
		if (s->block != NULL)
			word_drop_block(rib, s);
		egress_drop(rib, s);
	}
	rib->slots.idle.n = 0;
}

/* Record how long the oldest event of this commit has waited. */
static void
commit_note_lag(struct rib *rib)
{
	uint64_t now, lag_ms;

	if (rib->pending.oldest_rx_ms == 0)
		return;
	now = rib->clock_ms();
	lag_ms = now > rib->pending.oldest_rx_ms ? now - rib->pending.oldest_rx_ms : 0;
	rib->pending.oldest_rx_ms = 0;
	if (lag_ms > atomic_load_explicit(&fpm_status.lag_high_ms, memory_order_relaxed))
		atomic_store_explicit(&fpm_status.lag_high_ms, lag_ms,
				      memory_order_relaxed);
}

/*
 * Reuse the memory and numbers that the commit retired: after the grace period no reader
 * holds them. [rib, on MSG_RECLAIM]
 */
static void
commit_reclaim(void *owner, void *arg)
{
	struct rib *rib = owner;
	struct reclaim *p = arg;

	reclaim_memory(p);
	for (uint32_t i = 0; i < p->slots.n; i++) {
		word_clear(rib, p->slots.v[i]);
		slot_release(rib, p->slots.v[i]);
	}
	for (uint32_t i = 0; i < p->sids.n; i++)
		sid_number_put(rib, p->sids.v[i]);
	for (uint32_t i = 0; i < p->end_points.n; i++)
		sid_put(rib, p->end_points.v[i]);
	for (uint32_t i = 0; i < p->encaps.n; i++)
		encap_put(rib, p->encaps.v[i]);
	for (uint32_t i = 0; i < p->adjs.n; i++)
		adj_put(rib, p->adjs.v[i]);
	reclaim_finish(rib, p);
	vrf_retired_free(p->vrfs);
	free(p->rules[0]);
	free(p->rules[1]);
	if (p->rules_round != 0 && !rib->stopping)
		rules_reclaim(rib, p->rules_round);
	feedback_send(rib, p->feedback);
	reclaim_free(p);
}

void
commit_reclaim_all(struct rib *rib)
{
	struct reclaim *p, *next;

	cds_list_for_each_entry_safe (p, next, &rib->reclaims.list, node)
		commit_reclaim(rib, p);
	if (rib->reclaims.open != NULL)
		commit_reclaim(rib, rib->reclaims.open);
}

/* `local`: the VRFs have all prefixes of table local. */
static void
commit_now(struct rib *rib, bool local)
{
	bool tries = rib->pending.staged[0] || rib->pending.staged[1] ||
		     rib->vrfs.staged.n > 0 || rib->labels.staged.n > 0;
	uint64_t begin_ns = monotonic_ns();

	rib->pending.n_events = 0;
	rib->words.due = false;
	words_publish_all(rib);
	labels_commit(rib);
	rib->pending.failed = !commit_tries(rib) || !local;
	/* A trie that lacked memory may still name slots that no route has. */
	if (!rib->pending.failed && !rib->resync.nomem) {
		if (!ckpt_is_quiesced(
			    rib->ckpt)) /* a quiesced checkpoint keeps its slots */
			slots_retire_idle(rib);
		vrfs_publish(rib);
		rules_publish(rib);
	}
	if (tries || rib->count.word_writes != rib->pending.words_before) {
		rib->count.commits++;
		histogram_add(&fpm_status.commit, (monotonic_ns() - begin_ns) / 1000);
	}
	rib->pending.words_before = rib->count.word_writes;
	commit_note_lag(rib);
	sid_numbers_end_tables(rib);
	feedback_seal(rib);
	reclaim_start(rib, commit_reclaim);
}

/*
 * Log that a VRF lacks prefixes of table local because memory ran out, and later that it
 * has them.
 */
static void
commit_log_local(struct rib *rib, bool complete)
{
	if (!complete)
		route_log_nomem("local", rib->count.route_nomem);
	else if (rib->locals.nomem)
		log_info("rib: tries complete again");
	rib->locals.nomem = !complete;
}

void
rib_commit(struct rib *rib)
{
	bool local = locals_complete(rib);

	commit_log_local(rib, local);
	if (rib->nhs.changed && rib->early.n > 0)
		early_bind(rib, EARLY_KNOWN);
	slots_bind(rib);
	if (adj_is_awaited(rib)) {
		if (rib->words.due)
			words_publish(rib);
		return;
	}
	commit_now(rib, local);
	query_answer_all(rib);
}
