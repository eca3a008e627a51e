/* SPDX-License-Identifier: BSD-3-Clause */
/* Table local in the FIBs of VRFs, see local.h. [rib] */
#include "rib/local.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>

#include "rib/kroute.h"
#include "rib/impl.h"
#include "rib/routes.h"
#include "rib/vrf.h"

#define RETRIES 16u /* failures in a commit after which the other prefixes wait */

/* --- which route counts --------------------------------------------------------------- */

/*
 * Return the route for the prefix in the FIB that main and local share. NULL: there is
 * none, or table local has no prefix of this length.
 */
static const struct route *
local_route(const struct rib *rib, const struct prefix *p)
{
	return rib->kroutes.n_local[p->family == 6][p->len] == 0
		       ? NULL
		       : tables_find(&rib->tables, RIB_TABLE_MAIN, p);
}

/* Return the record of table local that decides for the prefix of `plain`, or NULL. */
static const struct kroute *
local_record(const struct rib *rib, const struct route *plain)
{
	uint32_t best = plain == NULL ? 0 : kroute_best(&rib->kroutes, &rib->links, plain);
	const struct kroute *kr = &rib->kroutes.v[best];

	return best != 0 && kr->is_local && kr->rtm_type != RTN_THROW ? kr : NULL;
}

/*
 * Return the slot of the longest route of the table that covers `p` and is shorter; 0:
 * none.
 */
static uint32_t
covering_slot(const struct rib *rib, uint32_t table, struct prefix p)
{
	const struct route *r = NULL;

	while (p.len > 0 && (r == NULL || route_effective(r) == 0)) {
		p.len--;
		prefix_mask(&p);
		r = tables_find(&rib->tables, table, &p);
	}
	return r == NULL ? 0 : route_effective(r);
}

/*
 * Return true if the table is that of a VRF, and packets of the VRF look up table local
 * first.
 */
static bool
local_is_before(const struct rib *rib, uint32_t table, uint8_t family)
{
	return family_is_ip(family) && rib->kroutes.local.n > 0 &&
	       !rib->locals.behind[family == 6] && table_is_of_vrf(rib, table);
}

uint32_t
local_fib_slot(const struct rib *rib, uint32_t table, const struct prefix *p,
	       const struct route *r)
{
	const struct rib_kroutes *k = &rib->kroutes;
	uint32_t own = r == NULL ? 0 : route_effective(r);
	const struct route *plain;
	const struct kroute *record;
	uint8_t hider;

	if (!local_is_before(rib, table, p->family))
		return own;
	plain = local_route(rib, p);
	record = local_record(rib, plain);
	if (record != NULL)
		return record->slot;
	if (own == 0) {
		if (plain == NULL || !kroute_is_thrown(k, plain))
			return 0;
		own = covering_slot(rib, table, *p);
		return own != 0 ? own : rib->contents.suppressed;
	}
	hider = kroute_hider(k, &rib->links, p, plain);
	return hider != RTN_UNSPEC ? rib->contents.hidden[hider] : own;
}

bool
local_hides(const struct rib *rib, const struct route *r)
{
	struct prefix p;

	if (!local_is_before(rib, r->table, (uint8_t)r->family))
		return false;
	p = route_prefix(r);
	return local_record(rib, local_route(rib, &p)) != NULL ||
	       kroute_hider(&rib->kroutes, &rib->links, &p, local_route(rib, &p)) !=
		       RTN_UNSPEC;
}

const struct route *
local_route_in(const struct rib *rib, const struct vrf *vrf, const struct prefix *p)
{
	const struct route *plain;

	if (vrf->view != 0 || !local_is_before(rib, vrf->fib->table, p->family))
		return NULL;
	plain = local_route(rib, p);
	return local_record(rib, plain) != NULL ? plain : NULL;
}

bool
local_has_records(const struct rib *rib, const struct route *r)
{
	const struct rib_kroutes *k = &rib->kroutes;
	uint32_t i = 0;

	if (r->table == RIB_TABLE_MAIN && family_is_ip((uint8_t)r->family) &&
	    k->n_local[r->family == 6][r->len] > 0)
		i = kroute_first(k, r);
	while (i != 0 && !k->v[i].is_local)
		i = kroute_next(k, i);
	return i != 0;
}

struct vrf *
local_next_vrf(const struct rib *rib, uint32_t *at)
{
	if (rib->vrfs.n == rib->vrfs.n_for_rules)
		return NULL;
	while (++*at < FIB_VRF_MAX)
		if (rib->vrfs.v[*at] != NULL)
			return rib->vrfs.v[*at];
	return NULL;
}

void
local_note_refusal(struct rib *rib, const struct kroute *kr)
{
	if (kr->is_local && kr->route->family == 6 &&
	    (kr->rtm_type == RTN_UNREACHABLE || kr->rtm_type == RTN_PROHIBIT ||
	     kr->rtm_type == RTN_BLACKHOLE))
		atomic_store_explicit(&rib->fib->local_refuses6, true,
				      memory_order_relaxed);
}

/* --- tries ---------------------------------------------------------------------------- */

/* Stage a prefix in the trie of a VRF. Return 0 or -ENOMEM. */
static int
local_stage(struct rib *rib, struct vrf *vrf, const struct prefix *p)
{
	uint32_t table = vrf->fib->table;
	uint32_t slot = local_fib_slot(rib, table, p, tables_find(&rib->tables, table, p));
	struct poptrie *pt = fib_trie(&vrf->fib->tries, p->family);
	int rc;

	if (poptrie_exact(pt, p->addr.octet, p->len) == slot)
		return 0;
	rc = slot != 0 ? poptrie_add(pt, p->addr.octet, p->len, slot)
		       : poptrie_del(pt, p->addr.octet, p->len);
	vrf_staged(rib, vrf, p->family);
	rib->count.trie_writes++;
	return rc == -ENOMEM ? rc : 0;
}

/* Record a prefix that locals_complete() must try again, because memory is out. */
static void
local_is_left(struct rib *rib, const struct prefix *p)
{
	struct rib_locals *l = &rib->locals;
	uint64_t hash = prefix_hash(p, rib->fib->seed);

	rib->count.route_nomem++;
	for (uint32_t i = hidx_first(&l->left_index, hash); i != 0;
	     i = hidx_next(&l->left_index, i)) {
		l->n_left_steps++;
		if (prefix_equal(&l->left[i - 1], p))
			return;
	}
	l->left = table_grow(l->left, &l->cap_left, l->n_left, sizeof(*l->left));
	l->left[l->n_left++] = *p;
	hidx_add(&l->left_index, hash, l->n_left);
}

void
locals_free(struct rib *rib)
{
	free(rib->locals.left);
	hidx_free(&rib->locals.left_index);
}

/* Stage a prefix in each VRF. Return false if memory is out. */
static bool
local_stage_all(struct rib *rib, const struct prefix *p)
{
	struct vrf *vrf;
	uint32_t at = 0;
	bool all = true;

	while ((vrf = local_next_vrf(rib, &at)) != NULL)
		all &= local_stage(rib, vrf, p) == 0;
	return all;
}

void
locals_stage(struct rib *rib, const struct prefix *p)
{
	if (!local_stage_all(rib, p))
		local_is_left(rib, p);
}

/*
 * Remove prefix `i` from the prefixes that wait for memory. The last prefix takes its
 * place.
 */
static void
left_remove(struct rib *rib, uint32_t i)
{
	struct rib_locals *l = &rib->locals;
	uint32_t last = --l->n_left;

	hidx_del(&l->left_index, i + 1);
	if (i == last)
		return;
	hidx_del(&l->left_index, last + 1);
	l->left[i] = l->left[last];
	hidx_add(&l->left_index, prefix_hash(&l->left[i], rib->fib->seed), i + 1);
}

/*
 * Try the prefixes again that wait for memory. After RETRIES failures leave the others to
 * the next commit, which begins with them, so that a commit does not try thousands of
 * prefixes while memory is out.
 */
static void
left_retry(struct rib *rib)
{
	struct rib_locals *l = &rib->locals;
	unsigned int n_failed = 0;

	for (uint32_t n = l->n_left; n > 0 && n_failed < RETRIES; n--) {
		struct prefix p;

		if (l->next_left >= l->n_left)
			l->next_left = 0;
		p = l->left[l->next_left];
		l->n_left_steps++;
		if (local_stage_all(rib, &p)) {
			left_remove(rib, l->next_left);
			continue;
		}
		rib->count.route_nomem++;
		l->next_left++;
		n_failed++;
	}
}

void
locals_stage_thrown(struct rib *rib, struct vrf *vrf, const struct prefix *of)
{
	const struct rib_kroutes *k = &rib->kroutes;

	for (uint32_t i = 0; k->n_throws > 0 && i < k->wide.n; i++) {
		const struct kroute *kr = &k->v[k->wide.v[i]];
		struct prefix p = route_prefix(kr->route);

		if (kr->wide != RTN_THROW || p.family != of->family || p.len < of->len ||
		    !prefix_covers(of, &p.addr))
			continue;
		if (vrf == NULL)
			locals_stage(rib, &p);
		else if (local_stage(rib, vrf, &p) < 0)
			local_is_left(rib, &p);
	}
}

bool
local_fill(struct rib *rib, struct vrf *vrf)
{
	const struct rib_kroutes *k = &rib->kroutes;
	bool all = true;

	for (uint32_t i = 0; i < k->local.n; i++) {
		struct prefix p = route_prefix(k->v[k->local.v[i]].route);

		all &= local_stage(rib, vrf, &p) == 0;
	}
	return all;
}

void
locals_set_behind(struct rib *rib, unsigned int family6, bool behind)
{
	struct vrf *vrf;
	uint32_t at = 0;

	if (rib->locals.behind[family6] == behind)
		return;
	rib->locals.behind[family6] = behind;
	while ((vrf = local_next_vrf(rib, &at)) != NULL)
		vrf->has_local = false;
	rib->vrfs.lack_local = true;
	/* Table local has begun or ceased to hide routes of VRFs inside its prefixes. */
	if (rib->kroutes.wide.n > 0)
		(void)resync_from(&rib->resync, rib->tables.main.high + 1);
}

bool
locals_complete(struct rib *rib)
{
	struct rib_locals *l = &rib->locals;
	uint32_t at = 0;
	struct vrf *vrf;

	left_retry(rib);
	if (rib->vrfs.lack_local) {
		rib->vrfs.lack_local = false;
		while ((vrf = local_next_vrf(rib, &at)) != NULL) {
			if (!vrf->has_local)
				vrf->has_local = local_fill(rib, vrf);
			rib->count.route_nomem += !vrf->has_local;
			rib->vrfs.lack_local |= !vrf->has_local;
		}
	}
	return l->n_left == 0 && !rib->vrfs.lack_local;
}
