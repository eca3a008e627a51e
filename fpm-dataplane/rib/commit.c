/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where rib writes what forwarders read: group words, the tries. [rib]; it alone stores to
 * fib->group.
 *
 * A commit begins when neigh has filled the adjacencies that are new in it (adj.c); until
 * then what is published stays, but for what links and neighbours do to it: a member that
 * is dead waits for nobody (words_publish()). Order within a commit: group words first, then the tries,
 * so that no trie ever leads to a word not yet written; slots that lost their last route
 * die only when the trie that no longer names them is published. What was replaced waits
 * for its grace period in a list of reclaim.h.
 *
 * When a trie runs out of memory, forwarding goes on with what is published: nothing is
 * freed that it may still name, and the next rounds try again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "rib/checkpoint.h"
#include "rib/rib_impl.h"

/*
 * The ways of a slot to be used: all of the best class there is, equal paths added up.
 * Returns how many, at least one.
 */
static uint32_t
choose(struct rib *rib, const struct slot *s)
{
	enum leg_class best = LEG_UNRESOLVED + 1, class;
	struct bucket_member *m;
	uint32_t n = 0, at;
	fib_path path;

	if (rib->cap_members < s->n_legs) {
		rib->cap_members = s->n_legs + 16;
		rib->members = must(realloc(rib->members, rib->cap_members * sizeof(*m)));
	}
	m = rib->members;
	for (uint32_t i = 0; i < s->n_legs; i++) {
		class = leg_path(rib, &s->leg[i], &path);
		if (class < best) {
			best = class;
			m[0] = (struct bucket_member){.path = path};
		}
	}
	if (best > LEG_FAILED)
		return 1; /* several of these would do the same */
	for (uint32_t i = 0; i < s->n_legs; i++) {
		if (leg_path(rib, &s->leg[i], &path) != best)
			continue;
		/* Legs are sorted: equal ones are neighbours, or near. */
		for (at = n; at > 0 && n - at < 8 && m[at - 1].path != path;)
			at--;
		if (at == 0 || m[at - 1].path != path) {
			m[n++] = (struct bucket_member){.path = path};
			at = n;
		}
		m[at - 1].weight += s->leg[i].way.weight;
	}
	return n;
}

/* Take the block that the present word points at out of use. */
static void
block_drop(struct rib *rib, struct slot *s)
{
	reclaim_block(rib, s->block);
	rib->block_bytes -= sizeof(*s->block) << s->log2_block;
	s->block = NULL;
}

/* Buckets of a word that is rib's to free. */
static fib_path *
own_buckets(uint64_t word)
{
	return (fib_path *)(uintptr_t)group_word_buckets(word);
}

/*
 * The group word of a slot as its next hops ask for now. Returns the published one when
 * nothing has changed; else a word that points to buckets of its own when there are several
 * ways.
 */
static uint64_t
compute(struct rib *rib, const struct slot *s)
{
	uint64_t old =
		atomic_load_explicit(&rib->fib->group[s->number], memory_order_relaxed);
	fib_path single = (fib_path)old, *block;
	const fib_path *keep = &single;
	unsigned int log2_old = 0, log2_n;
	uint32_t n = choose(rib, s);

	if (n == 1)
		return group_word_single(rib->members[0].path);
	if (group_word_is_block(old)) {
		keep = group_word_buckets(old);
		log2_old = group_word_log2(old);
	}
	log2_n = group_log2(rib->members, n, log2_old);
	block = must(aligned_alloc(64, sizeof(*block) << log2_n));
	group_fill(block, log2_n, rib->members, n, keep, log2_old);
	if (log2_n == log2_old && memcmp(block, keep, sizeof(*block) << log2_n) == 0) {
		free(block);
		return old;
	}
	return group_word_block(block, log2_n);
}

bool
slot_is_current(struct rib *rib, const struct slot *s)
{
	uint64_t word;

	if (s->kind == SLOT_ID) {
		nh_ways(rib, nh_find(rib, s->nhid), s->mtu_class, &rib->scratch);
		if (!slot_has_ways(s, &rib->scratch))
			return false;
	}
	word = compute(rib, s);
	if (word == atomic_load_explicit(&rib->fib->group[s->number], memory_order_relaxed))
		return true;
	if (group_word_is_block(word))
		free(own_buckets(word));
	return false;
}

/* Compute the group word of a slot and store it if it differs. */
static void
publish(struct rib *rib, struct slot *s)
{
	uint64_t old =
		atomic_load_explicit(&rib->fib->group[s->number], memory_order_relaxed);
	uint64_t word = compute(rib, s);

	if (word == old)
		return;
	/* Release: who reads the word also sees the buckets and the adjacencies' keys. */
	atomic_store_explicit(&rib->fib->group[s->number], word, memory_order_release);
	rib->count.word_writes++;
	if (s->block != NULL)
		block_drop(rib, s);
	if (group_word_is_block(word)) {
		s->block = own_buckets(word);
		s->log2_block = (uint8_t)group_word_log2(word);
		rib->block_bytes += sizeof(*s->block) << s->log2_block;
	}
}

/* Dirty slots take the ways that their ids have now; new adjacencies are asked for. */
void
slots_bind(struct rib *rib)
{
	for (uint32_t i = 0; i < rib->dirty.n; i++) {
		struct slot *s = slot_at(rib, rib->dirty.v[i]);

		if ((s->dirty & SLOT_CONTENT) != 0 && s->kind == SLOT_ID) {
			nh_ways(rib, nh_find(rib, s->nhid), s->mtu_class, &rib->scratch);
			if (!slot_has_ways(s, &rib->scratch))
				slot_set_ways(rib, s, &rib->scratch);
		}
		s->dirty &= (uint8_t)~SLOT_CONTENT;
	}
}

static void
publish_all(struct rib *rib)
{
	for (uint32_t i = 0; i < rib->dirty.n; i++) {
		struct slot *s = slot_at(rib, rib->dirty.v[i]);

		if ((s->dirty & SLOT_PATHS) != 0)
			publish(rib, s);
		s->dirty = 0;
		s->queued = false;
	}
	rib->dirty.n = 0;
}

/* Has neigh still to say what it knows of an adjacency of this slot? */
static bool
slot_is_awaited(const struct rib *rib, const struct slot *s)
{
	for (uint32_t i = 0; i < s->n_legs; i++)
		if (s->leg[i].adj != 0 && rib->adj[s->leg[i].adj].asked)
			return true;
	return false;
}

void
words_publish(struct rib *rib)
{
	uint32_t kept = 0;

	rib->words_due = false;
	for (uint32_t i = 0; i < rib->dirty.n; i++) {
		struct slot *s = slot_at(rib, rib->dirty.v[i]);

		if ((s->dirty & SLOT_PATHS) != 0 && !slot_is_awaited(rib, s)) {
			publish(rib, s);
			s->dirty &= (uint8_t)~SLOT_PATHS;
		}
		s->queued = s->dirty != 0;
		if (s->queued)
			rib->dirty.v[kept++] = s->number;
	}
	rib->dirty.n = kept;
}

static void
complain(const char *what, uint64_t count)
{
	static struct log_limit limit;
	unsigned int missed;

	if (log_allowed(&limit, &missed))
		log_error("rib: out of memory in=%s count=%llu missed=%u", what,
			  (unsigned long long)count, missed);
}

/* In every copy. Returns 0, -ENOENT when there is nothing to do anywhere, or -ENOMEM. */
static int
stage_copies(const struct rib *rib, const struct route *r)
{
	uint32_t slot = route_effective(r);
	int all = -ENOENT;
	unsigned int n;
	const struct fib_copy *copy = rib_tries(rib, r->table, &n);

	for (unsigned int c = 0; c < n; c++) {
		struct poptrie *pt = fib_trie(&copy[c], r->family);
		int rc = slot != 0 ? poptrie_add(pt, r->octet, r->len, slot)
				   : poptrie_del(pt, r->octet, r->len);

		if (all != -ENOMEM && rc != -ENOENT)
			all = rc;
	}
	return all;
}

/* Bring the trie to what the route says. Returns 0 or -ENOMEM: then a walk repeats it. */
int
rib_stage(struct rib *rib, const struct route *r)
{
	int rc = stage_copies(rib, r);

	if (rc == -ENOENT)
		return 0;
	rib->count.trie_writes++;
	if (r->table == RIB_TABLE_MAIN)
		rib->staged[r->family == 6] = true;
	else
		vrf_staged(rib, vrf_find(rib, r->table), (uint8_t)r->family);
	if (rc == 0)
		return 0;
	rib->count.route_nomem++;
	complain("add", rib->count.route_nomem);
	/* From the start: the walk may have passed this one already. */
	rib->resync = rib->lacking = true;
	rib->resync_at = 1;
	return rc;
}

bool
route_is_staged(const struct rib *rib, const struct route *r)
{
	unsigned int n;
	const struct fib_copy *copy = rib_tries(rib, r->table, &n);

	for (unsigned int c = 0; c < n; c++)
		if (poptrie_exact(fib_trie(&copy[c], r->family), r->octet, r->len) !=
		    route_effective(r))
			return false;
	return true;
}

/* Some prefix is not in the trie as it should be: compare a slice. */
bool
rib_resync(struct rib *rib)
{
	uint32_t end = rib->resync_at + RIB_SLICE;

	for (; rib->resync_at < end && rib->resync_at <= tables_walk_end(&rib->tables);
	     rib->resync_at++) {
		struct route *r = tables_walk_at(&rib->tables, rib->resync_at);
		uint32_t at = rib->resync_at;

		if (r != NULL && tally_is_foreign(rib, r)) {
			zebra_withdraw(rib, r);
			r = tables_walk_at(&rib->tables, at);
		}
		if (r == NULL || route_is_staged(rib, r)) {
			if (r != NULL && route_effective(r) == 0)
				route_settle(rib, r, 0);
			continue;
		}
		if (rib_stage(rib, r) < 0) {
			rib->resync_at = at;
			return false; /* not now; the next round or tick */
		}
		if (route_effective(r) == 0)
			route_settle(rib, r, 0);
	}
	if (rib->resync_at <= tables_walk_end(&rib->tables))
		return true;
	rib->resync = false;
	tallies_own(rib);
	if (rib->lacking)
		log_info("rib: tries complete again");
	rib->lacking = false;
	return false;
}

static bool
commit_tries(struct rib *rib)
{
	const struct fib *fib = rib->fib;
	bool all = true;

	for (unsigned int v = 0; v < 2; v++) {
		bool left = false;

		/* A copy that has all of it costs nothing when it is asked again. */
		for (unsigned int c = 0; rib->staged[v] && c < fib->n_copies; c++) {
			if (poptrie_commit(fib_trie(&fib->copy[c], v == 0 ? 4 : 6)) == 0)
				continue;
			rib->count.commit_nomem++;
			complain("commit", rib->count.commit_nomem);
			left = true;
		}
		rib->staged[v] = left;
		all &= !left;
	}
	if (vrfs_commit(rib) == 0)
		return all;
	rib->count.commit_nomem++;
	complain("commit", rib->count.commit_nomem);
	return false;
}

/* Slots that no route names: nobody can find them after this commit. */
static void
kill_idle(struct rib *rib)
{
	for (uint32_t i = 0; i < rib->idle.n; i++) {
		struct slot *s = slot_at(rib, rib->idle.v[i]);

		s->idle = false;
		if (s->refs != 0)
			continue; /* taken again */
		slot_kill(rib, s);
		vec32_push(&reclaim_open(rib)->slots, s->number);
		if (s->block != NULL)
			block_drop(rib, s);
	}
	rib->idle.n = 0;
}

/* How long the oldest of what is in this commit has waited for it. */
static void
note_lag(struct rib *rib)
{
	uint64_t now, lag_ms;

	if (rib->oldest_rx_ms == 0)
		return;
	now = rib->clock_ms();
	lag_ms = now > rib->oldest_rx_ms ? now - rib->oldest_rx_ms : 0;
	rib->oldest_rx_ms = 0;
	if (lag_ms > atomic_load_explicit(&fpm_status.lag_high_ms, memory_order_relaxed))
		atomic_store_explicit(&fpm_status.lag_high_ms, lag_ms,
				      memory_order_relaxed);
}

/* Grace period over: nobody holds any of it.  [rib, by MSG_RECLAIM] */
static void
commit_reclaim(void *owner, void *arg)
{
	struct rib *rib = owner;
	struct reclaim *p = arg;

	reclaim_memory(p);
	for (uint32_t i = 0; i < p->slots.n; i++) {
		atomic_store_explicit(&rib->fib->group[p->slots.v[i]],
				      group_word_single(PATH(PATH_UNRESOLVED, 0)),
				      memory_order_relaxed);
		slot_release(rib, p->slots.v[i]);
	}
	for (uint32_t i = 0; i < p->adjs.n; i++)
		adj_put(rib, p->adjs.v[i]);
	reclaim_finish(rib, p);
	vrf_bury(p->vrfs);
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

static void
commit(struct rib *rib)
{
	bool tries = rib->staged[0] || rib->staged[1] || rib->vrf_staged.n > 0;
	uint64_t begin_ns = monotonic_ns();

	rib->n_events = 0;
	rib->words_due = false;
	publish_all(rib);
	rib->commit_failed = !commit_tries(rib);
	/* A trie that could not be completed may still name slots that no route does. */
	if (!rib->commit_failed && !rib->resync) {
		if (!ckpt_is_frozen(rib->ckpt)) /* which would not hear of it */
			kill_idle(rib);
		vrfs_publish(rib);
	}
	if (tries || rib->count.word_writes != rib->words_before) {
		rib->count.commits++;
		histogram_add(&fpm_status.commit, (monotonic_ns() - begin_ns) / 1000);
	}
	rib->words_before = rib->count.word_writes;
	note_lag(rib);
	feedback_seal(rib);
	reclaim_start(rib, commit_reclaim);
}

void
rib_commit(struct rib *rib)
{
	if (rib->ids_changed && rib->n_early > 0)
		early_bind(rib, EARLY_KNOWN);
	slots_bind(rib);
	if (adj_awaited(rib)) {
		if (rib->words_due)
			words_publish(rib);
		return;
	}
	commit(rib);
	query_answer_all(rib);
}
