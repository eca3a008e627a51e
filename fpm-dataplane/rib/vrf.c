/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * FIBs of VRFs: created when the kernel has a VRF, filled with the existing routes of its
 * table, published when all are in it, unpublished when the VRF is removed. [rib]. No other
 * file stores to fib->vrf.
 *
 * Routes belong to a table, not to a VRF, and stay when a VRF is removed, because zebra
 * withdraws them. If zebra is not connected at that time, a VRF of another name that gets
 * the table does not get these routes (table_count.h). A trie starts in the small form,
 * because there may be thousands of VRFs with ten routes each. When it has too many routes
 * for that form, a large trie is filled and replaces it permanently.
 */
#include "rib/vrf.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "rib/index.h"
#include "rib/reclaim.h"
#include "rib/impl.h"
#include "rib/routes.h"
#include "rib/replay.h"
#include "rib/table_count.h"

#define SMALL_TRIE_ROUTES \
	2048u /* routes of a small trie: more would take long to move to a large one */
#define RETRY_MS 1000u

static uint16_t
vrf_number_of_table(const struct rib *rib, uint32_t table)
{
	uint32_t i = hidx_first(&rib->vrfs.by_table, hash32(table));

	while (i != 0 && rib->vrfs.v[i]->fib->table != table)
		i = hidx_next(&rib->vrfs.by_table, i);
	return (uint16_t)i;
}

struct vrf *
vrf_find(const struct rib *rib, uint32_t table)
{
	return rib->vrfs.n == 0 ? NULL : rib->vrfs.v[vrf_number_of_table(rib, table)];
}

bool
table_is_of_vrf(const struct rib *rib, uint32_t table)
{
	const struct vrf *vrf = vrf_find(rib, table);

	return vrf != NULL && !vrf_is_for_rules(vrf);
}

uint16_t
vrf_of_table(const struct rib *rib, uint32_t table)
{
	if (table == RIB_TABLE_MAIN)
		return 0;
	return table_is_of_vrf(rib, table) ? vrf_find(rib, table)->number : FIB_VRF_NONE;
}

const struct fib_copy *
rib_tries(const struct rib *rib, uint32_t table, unsigned int *n)
{
	const struct vrf *vrf;

	if (table == RIB_TABLE_MAIN) {
		*n = rib->fib->n_copies;
		return rib->fib->copy;
	}
	vrf = vrf_find(rib, table);
	*n = vrf != NULL;
	return vrf == NULL ? NULL : &vrf->fib->tries;
}

static struct vrf_retired *
vrf_retired_new(struct rib *rib)
{
	struct reclaim *p = reclaim_open(rib);
	struct vrf_retired *old = mem_or_abort(calloc(1, sizeof(*old)));

	old->next = p->vrfs;
	p->vrfs = old;
	return old;
}

void
vrf_retired_free(struct vrf_retired *list)
{
	struct vrf_retired *next;

	for (struct vrf_retired *old = list; old != NULL; old = next) {
		next = old->next;
		poptrie_destroy(old->trie[0]);
		poptrie_destroy(old->trie[1]);
		free(old->fib);
		free(old);
	}
}

static void
vrf_publish(struct rib *rib, const struct vrf *vrf)
{
	fib_vrf_publish(rib->fib, vrf->number, vrf->fib);
	if (vrf->former != 0)
		fib_vrf_publish(rib->fib, vrf->former, vrf->fib);
}

void
vrf_drop_former(struct rib *rib, struct vrf *vrf)
{
	if (vrf->former != 0)
		fib_vrf_publish(rib->fib, vrf->former, NULL);
	vrf->former = 0;
}

/* Replace the FIB of a VRF. The old one is freed later, without its tries. */
static void
vrf_replace_fib(struct rib *rib, struct vrf *vrf, struct fib_vrf *now)
{
	vrf_retired_new(rib)->fib = vrf->fib;
	vrf->fib = now;
	if (vrf->published)
		vrf_publish(rib, vrf);
}

static struct fib_vrf *
fib_vrf_copy(const struct fib_vrf *fib)
{
	struct fib_vrf *copy = mem_or_abort(malloc(sizeof(*copy)));

	*copy = *fib;
	return copy;
}

static void
vrf_rename(struct rib *rib, struct vrf *vrf, const char *name)
{
	struct fib_vrf *now = fib_vrf_copy(vrf->fib);

	memcpy(now->name, name, sizeof(now->name));
	vrf_replace_fib(rib, vrf, now);
}

static struct vrf *
vrf_add(struct rib *rib, uint16_t number, struct fib_vrf *fib)
{
	struct vrf *vrf = mem_or_abort(calloc(1, sizeof(*vrf)));

	vrf->fib = fib;
	vrf->number = number;
	vrf->grow_at[0] = vrf->grow_at[1] = SMALL_TRIE_ROUTES;
	vrf->longer_than = -1;
	rib->vrfs.v[number] = vrf;
	rib->vrfs.n++;
	return vrf;
}

static_assert((unsigned int)TABLE_MOST_rule_fibs == FIB_RULE_TABLES,
	      "limits.def tells the number of FIBs for rules");

/*
 * Return a free number for rules; 0: none. A number is reused as late as possible, because
 * readers may still have the last list.
 */
static uint16_t
vrf_number_for_rules(struct rib *rib)
{
	for (unsigned int tried = 0; tried < FIB_RULE_TABLES; tried++) {
		uint16_t number = (uint16_t)(FIB_VRF_MAX + rib->vrfs.next);

		rib->vrfs.next = (uint16_t)((rib->vrfs.next + 1) % FIB_RULE_TABLES);
		if (rib->vrfs.v[number] == NULL)
			return number;
	}
	return 0;
}

struct vrf *
vrf_for_rules(struct rib *rib, uint32_t table, uint8_t view)
{
	uint16_t number = vrf_number_for_rules(rib);
	struct fib_vrf *fib = number == 0 ? NULL : fib_vrf_new(rib->fib, table, "");
	struct vrf *vrf;

	if (fib == NULL)
		return NULL;
	vrf = vrf_add(rib, number, fib);
	vrf->view = view;
	table_used(TABLE_rule_fibs, ++rib->vrfs.n_for_rules);
	if (view == 0)
		hidx_add(&rib->vrfs.by_table, hash32(table), number);
	else
		vec32_push(&rib->vrfs.views, number);
	/*
	 * Routes of its table may have arrived before. A view may have the routes of table
	 * main.
	 */
	vrf->lap = resync_from(&rib->resync, view == 0 ? rib->tables.main.high + 1 : 1);
	if (view == 0 && rib->conf.feedback)
		feedback_resend_after(&rib->feedback, vrf->lap);
	return vrf;
}

bool
vrf_give_to_rules(struct rib *rib, struct vrf *vrf)
{
	uint16_t number = vrf_number_for_rules(rib), former = vrf->number;

	if (number == 0)
		return false;
	log_info("rib: vrf fib removed name=%s table=%u", vrf->fib->name, vrf->fib->table);
	table_count_vrf_removed(rib, vrf->fib->table, vrf->fib->name);
	hidx_del(&rib->vrfs.by_table, former);
	hidx_add(&rib->vrfs.by_table, hash32(vrf->fib->table), number);
	rib->vrfs.v[former] = NULL;
	rib->vrfs.v[number] = vrf;
	table_used(TABLE_rule_fibs, ++rib->vrfs.n_for_rules);
	if (vrf->listed)
		vec32_push(&rib->vrfs.staged, number);
	vrf->number = number;
	vrf->former = former;
	vrf->former_listed = vrf->listed_now = vrf->in_use = true;
	vrf_rename(rib, vrf, (char[sizeof(vrf->fib->name)]){""});
	rib->vrfs.table_ended = true; /* the SIDs of the table no longer belong to a VRF */
	return true;
}

/*
 * A VRF has got the table of a FIB for rules. Keep this FIB as a view while a list of rules
 * may name it.
 */
static void
vrf_takes_table(struct rib *rib, struct vrf *of_rules)
{
	if (!of_rules->listed_now && !of_rules->in_use) {
		vrf_end(rib, of_rules);
		return;
	}
	hidx_del(&rib->vrfs.by_table, of_rules->number);
	of_rules->wanted = false;
	of_rules->view = VIEW_WHOLE;
	of_rules->chain = mem_or_abort(malloc(sizeof(*of_rules->chain)));
	of_rules->chain[0] = of_rules->fib->table;
	of_rules->n_chain = 1;
	vec32_push(&rib->vrfs.views, of_rules->number);
}

/* A VRF gets the number of a removed VRF: end its use as a second number of the old FIB. */
static void
vrf_number_returns(struct rib *rib, uint16_t number)
{
	for (uint32_t i = FIB_VRF_MAX; rib->vrfs.n_for_rules > 0 && i < FIB_NUMBERS; i++)
		if (rib->vrfs.v[i] != NULL && rib->vrfs.v[i]->former == number)
			vrf_drop_former(rib, rib->vrfs.v[i]);
}

/* Create the FIB of a VRF. Return 0 or -ENOMEM. */
static int
vrf_begin(struct rib *rib, uint16_t number, uint32_t table, const char *name)
{
	struct fib_vrf *fib = fib_vrf_new(rib->fib, table, name);
	struct vrf *vrf, *of_rules = vrf_find(rib, table);

	vrf_number_returns(rib, number);
	if (fib == NULL)
		return -ENOMEM;
	if (of_rules != NULL)
		vrf_takes_table(rib, of_rules);
	rib->rules.due = true;
	counters_vrf(number, &(struct vrf_counters){0}, &fib->base);
	vrf = vrf_add(rib, number, fib);
	hidx_add(&rib->vrfs.by_table, hash32(table), number);
	rib->vrfs.lack_local = true;
	log_info("rib: vrf fib created name=%s table=%u", name, table);
	table_count_vrf_added(rib, table, name);
	if (rib->tables.other.n == rib->tables.n_not_ip)
		return 0;
	/* Routes of its table may have arrived before. */
	vrf->lap = resync_from(&rib->resync, rib->tables.main.high + 1);
	if (rib->conf.feedback)
		feedback_resend_after(&rib->feedback, vrf->lap);
	return 0;
}

static void
vrf_retry_add(struct rib *rib, const struct msg_vrf *m)
{
	struct vrf_retry *retry = mem_or_abort(calloc(1, sizeof(*retry)));

	retry->number = m->number;
	retry->table = m->table;
	memcpy(retry->name, m->name, sizeof(retry->name));
	retry->next = rib->vrfs.retries;
	rib->vrfs.retries = retry;
	retry->retry_ms = rib->clock_ms() + RETRY_MS;
	log_error("rib: vrf fib not created reason=no-memory name=%s table=%u retry_ms=%u",
		  m->name, m->table, RETRY_MS);
}

/* Drop the retry of a VRF, because a newer event replaces it. */
static void
vrf_retry_drop(struct rib *rib, uint16_t number)
{
	for (struct vrf_retry **p = &rib->vrfs.retries, *retry; (retry = *p) != NULL;
	     p = &retry->next)
		if (retry->number == number) {
			*p = retry->next;
			free(retry);
			return;
		}
}

/*
 * Return true if the VRFs have the routes that they had before this daemon started: from
 * the checkpoint, or from the kernel and from zebra. Until then a missing default route
 * means nothing, because it may still arrive. If the kernel has routes of zebra, wait for
 * zebra as well.
 */
static bool
vrfs_have_routes(const struct rib *rib)
{
	enum routes_from from = rib->conf.from;

	if (rib->count.restored > 0 || replay_is_complete(rib))
		return true;
	if (from == ROUTES_FROM_FPM ||
	    atomic_load_explicit(&kernel_status.in_step, memory_order_relaxed) == 0)
		return false;
	return from == ROUTES_FROM_KERNEL ||
	       atomic_load_explicit(&kernel_status.of_zebra, memory_order_relaxed) == 0;
}

void
vrfs_check_told(struct rib *rib)
{
	if (rib->vrfs.told || !vrfs_have_routes(rib))
		return;
	rib->vrfs.told = true;
	atomic_store_explicit(&rib->fib->vrfs_told, true, memory_order_relaxed);
}

void
vrfs_retry(struct rib *rib)
{
	struct vrf_retry *retry;

	while ((retry = rib->vrfs.retries) != NULL && rib->clock_ms() >= retry->retry_ms) {
		if (vrf_begin(rib, retry->number, retry->table, retry->name) < 0) {
			retry->retry_ms = rib->clock_ms() + RETRY_MS;
			return;
		}
		vrf_retry_drop(rib, retry->number);
	}
}

void
vrf_end(struct rib *rib, struct vrf *vrf)
{
	struct vrf_retired *old = vrf_retired_new(rib);

	vrf_drop_former(rib, vrf);
	fib_vrf_publish(rib->fib, vrf->number, NULL);
	old->fib = vrf->fib;
	old->trie[0] = vrf->fib->tries.pt4;
	old->trie[1] = vrf->fib->tries.pt6;
	if (!vrf_is_for_rules(vrf)) {
		log_info("rib: vrf fib removed name=%s table=%u", vrf->fib->name,
			 vrf->fib->table);
		table_count_vrf_removed(rib, vrf->fib->table, vrf->fib->name);
	}
	rib->vrfs.table_ended |= vrf->view == 0;
	if (vrf->view == 0)
		hidx_del(&rib->vrfs.by_table, vrf->number);
	rib->vrfs.v[vrf->number] = NULL;
	rib->vrfs.n--;
	rib->vrfs.n_published -= vrf->published;
	if (vrf_is_for_rules(vrf))
		table_used(TABLE_rule_fibs, --rib->vrfs.n_for_rules);
	for (uint32_t i = 0; vrf->view != 0 && i < rib->vrfs.views.n; i++)
		if (rib->vrfs.views.v[i] == vrf->number)
			rib->vrfs.views.v[i] = rib->vrfs.views.v[--rib->vrfs.views.n];
	free(vrf->chain);
	free(vrf);
}

void
rib_vrf_event(struct rib *rib, const struct msg_vrf *m)
{
	struct vrf *vrf = rib->vrfs.v[m->number];

	if (table_is_reserved(m->table))
		return; /* its routes are skipped */
	vrf_retry_drop(rib, m->number);
	rib->rules.due =
		true; /* a table may have another FIB number now, or need a FIB of rules */
	if (m->gone && vrf != NULL)
		vrf_end(rib, vrf);
	else if (!m->gone && vrf != NULL)
		vrf_rename(rib, vrf, m->name);
	else if (!m->gone && vrf_begin(rib, m->number, m->table, m->name) < 0)
		vrf_retry_add(rib, m);
}

void
vrf_staged(struct rib *rib, struct vrf *vrf, uint8_t family)
{
	vrf->staged[family == 6] = true;
	if (!vrf->listed)
		vec32_push(&rib->vrfs.staged, vrf->number);
	vrf->listed = true;
}

/* Copy all staged routes of the small trie to a large one. Return 0 or -ENOMEM. */
static int
trie_fill(struct poptrie *to, const struct poptrie *from)
{
	struct ipaddr addr = {0};
	unsigned int len = 0;
	bool first = true;
	uint32_t value;
	int rc = 0;

	while (rc == 0 &&
	       (value = poptrie_next(from, addr.octet, &len, first)) != POPTRIE_NONE) {
		rc = poptrie_add(to, addr.octet, len, value);
		first = false;
	}
	return rc < 0 ? rc : poptrie_commit(to);
}

/*
 * Replace a small trie. If out of memory, keep it, because it is correct with any number of
 * routes.
 */
static void
vrf_grow_trie(struct rib *rib, struct vrf *vrf, unsigned int v)
{
	struct poptrie *old = fib_trie(&vrf->fib->tries, v == 0 ? 4 : 6), *large;
	struct fib_vrf *now;

	if (fib_trie_large(rib->fib, v == 0 ? 4 : 6, &large) < 0) {
		vrf->grow_at[v] *= 2;
		return;
	}
	if (trie_fill(large, old) < 0) {
		/*
		 * Free the large trie later, because it first gets back the memory that it
		 * retired in the attempt.
		 */
		vrf_retired_new(rib)->trie[v] = large;
		vrf->grow_at[v] *= 2;
		return;
	}
	now = fib_vrf_copy(vrf->fib);
	if (v == 0)
		now->tries.pt4 = large;
	else
		now->tries.pt6 = large;
	vrf_replace_fib(rib, vrf, now);
	vrf_retired_new(rib)->trie[v] = old;
	vrf->large[v] = true;
}

/* Commit one trie. Return 0 or -ENOMEM. */
static int
vrf_commit_trie(struct rib *rib, struct vrf *vrf, unsigned int v)
{
	struct poptrie_stats st;

	if (!vrf->large[v]) {
		poptrie_stats(fib_trie(&vrf->fib->tries, v == 0 ? 4 : 6), &st);
		if (st.routes > vrf->grow_at[v])
			vrf_grow_trie(rib, vrf, v);
	}
	return poptrie_commit(fib_trie(&vrf->fib->tries, v == 0 ? 4 : 6));
}

int
vrfs_commit(struct rib *rib)
{
	uint32_t kept = 0;
	int all = 0;

	for (uint32_t i = 0; i < rib->vrfs.staged.n; i++) {
		struct vrf *vrf = rib->vrfs.v[rib->vrfs.staged.v[i]];

		if (vrf == NULL || !vrf->listed)
			continue; /* removed, and perhaps replaced by another */
		for (unsigned int v = 0; v < 2; v++) {
			int rc = vrf->staged[v] ? vrf_commit_trie(rib, vrf, v) : 0;

			vrf->staged[v] = rc < 0;
			if (rc < 0)
				all = rc;
		}
		vrf->listed = vrf->staged[0] || vrf->staged[1];
		if (vrf->listed)
			rib->vrfs.staged.v[kept++] = vrf->number;
	}
	rib->vrfs.staged.n = kept;
	return all;
}

void
vrfs_publish(struct rib *rib)
{
	uint32_t left = rib->vrfs.n;

	if (rib->vrfs.n == rib->vrfs.n_published)
		return;
	for (uint32_t i = 1; left > 0 && i < FIB_NUMBERS; i++) {
		struct vrf *vrf = rib->vrfs.v[i];

		left -= vrf != NULL;
		if (vrf == NULL || vrf->published ||
		    (!vrf_is_for_rules(vrf) && !vrf->has_local) ||
		    !resync_has_passed(&rib->resync, vrf->lap))
			continue;
		vrf->published = true;
		rib->vrfs.n_published++;
		vrf_publish(rib, vrf);
	}
}

void
vrfs_free(struct rib *rib)
{
	for (uint32_t i = 1; i < FIB_NUMBERS; i++) {
		struct vrf *vrf = rib->vrfs.v[i];

		if (vrf == NULL)
			continue;
		vrf_drop_former(rib, vrf);
		fib_vrf_publish(rib->fib, i, NULL);
		fib_vrf_free(vrf->fib);
		free(vrf->chain);
		free(vrf);
	}
	while (rib->vrfs.retries != NULL)
		vrf_retry_drop(rib, rib->vrfs.retries->number);
	vec32_free(&rib->vrfs.staged);
	vec32_free(&rib->vrfs.views);
	hidx_free(&rib->vrfs.by_table);
}
