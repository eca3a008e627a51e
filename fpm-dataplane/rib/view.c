/* SPDX-License-Identifier: BSD-3-Clause */
/* Views of tables, see view.h. [rib] */
#include "rib/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rib/index.h"
#include "rib/kroute.h"
#include "rib/impl.h"
#include "rib/routes.h"
#include "rib/source.h"
#include "rib/vrf.h"

/* Return true if the content of the view for the prefix of `r` may depend on `r`. */
static bool
view_depends_on(const struct rib *rib, const struct vrf *view, const struct route *r)
{
	return view_has_family(view, (uint8_t)r->family) &&
	       view->fib->table == source_kernel_table(&rib->sources, r->table);
}

/*
 * Return the route of a table for the prefix; NULL: none. `r` is a route for the prefix, or
 * NULL.
 */
static const struct route *
route_in_table(const struct rib *rib, uint32_t table, const struct prefix *p,
	       const struct route *r)
{
	return r != NULL && r->table == table ? r : tables_find(&rib->tables, table, p);
}

/*
 * Return true if the route is of table local, which Linux looks up before routes of one TOS
 * (fib_find_alias()) and source-specific routes of main. `r`: a plain route of main, or a
 * route of main for a source or a TOS; NULL: none.
 */
static bool
local_is_first(const struct rib *rib, const struct route *r)
{
	uint32_t best = r == NULL ? 0 : kroute_best(&rib->kroutes, &rib->links, r);

	return best != 0 && rib->kroutes.v[best].is_local;
}

/* Return true if the route is of table local and of type throw, so that main decides. */
static bool
local_is_thrown(const struct rib *rib, const struct route *r)
{
	const struct rib_kroutes *k = &rib->kroutes;
	uint32_t first = r == NULL ? 0 : kroute_best(k, NULL, r);

	return first != 0 && k->v[first].is_local && k->v[first].rtm_type == RTN_THROW &&
	       kroutes_are_split(k, (uint8_t)r->family);
}

/* Return the slot of the view of main where table local hides `p`; 0: it does not. */
static uint32_t
hidden_slot(const struct rib *rib, const struct prefix *p, const struct route *plain)
{
	return rib->contents.hidden[kroute_hider(&rib->kroutes, &rib->links, p, plain)];
}

/*
 * Return true if the plain route of a prefix is hidden, because the prefix also has a
 * source-specific route in the same table. `in_local`: in table local, else in the table of
 * the view. Linux does the same (fib6_node_lookup_1()), except for the default route.
 */
static bool
plain_is_hidden(const struct rib *rib, const struct vrf *view, const struct route *r,
		bool in_local)
{
	const struct rib_sources *s = &rib->sources;
	struct prefix p = route_prefix(r);

	for (uint32_t at = 0; view->hides && view->view == 6 && r->len > 0 && at < s->n;
	     at++) {
		const struct route *found;

		if (s->v[at].table != view->fib->table || s->v[at].n == 0)
			continue;
		found = route_in_table(rib, source_table(at), &p, r);
		if (in_local ? local_is_first(rib, found)
			     : found != NULL && kroute_main_slot(&rib->kroutes, &rib->links,
								 found) != 0)
			return true;
	}
	return false;
}

/*
 * Return `slot`, or contents.suppressed if the prefix of `r` is too short for the view.
 * Linux only suppresses routes that it could forward by (fib_rules_lookup()).
 */
static uint32_t
unless_suppressed(const struct rib *rib, const struct vrf *view, const struct route *r,
		  uint32_t slot)
{
	return (int32_t)r->len <= view->longer_than && !slot_at(&rib->slots, slot)->refuses
		       ? rib->contents.suppressed
		       : slot;
}

/*
 * Return the slot of the view for a prefix, if table local does not decide; 0: none. `r` is
 * a route for the prefix, or NULL.
 */
static uint32_t
view_slot_of_main(const struct rib *rib, const struct vrf *view, const struct prefix *p,
		  const struct route *r)
{
	bool of_main = view->fib->table == RIB_TABLE_MAIN;

	for (uint32_t i = 0; i < view->n_chain; i++) {
		const struct route *found = route_in_table(rib, view->chain[i], p, r);
		uint32_t slot =
			found == NULL ? 0
			: of_main     ? kroute_main_slot(&rib->kroutes, &rib->links, found)
				      : route_effective(found);

		if (slot != 0 && i == view->n_chain - 1 &&
		    plain_is_hidden(rib, view, found, false))
			slot = 0;
		if (slot != 0)
			return unless_suppressed(rib, view, found, slot);
	}
	return 0;
}

/*
 * Return the slot of table local in a view of main for the prefix of `r`; 0: main decides.
 * Set *thrown to true if table local has a route of type throw for the source or the TOS of
 * the view. As in every table, routes for a source or a TOS precede the plain route.
 */
static uint32_t
view_slot_of_local(const struct rib *rib, const struct vrf *view, const struct route *r,
		   bool *thrown)
{
	struct prefix p = route_prefix(r);

	for (uint32_t i = 0; i < view->n_chain; i++) {
		const struct route *found = route_in_table(rib, view->chain[i], &p, r);
		bool plain = i == view->n_chain - 1;

		*thrown = !plain && local_is_thrown(rib, found);
		if (*thrown)
			return 0;
		if (local_is_first(rib, found) &&
		    !(plain && plain_is_hidden(rib, view, found, true)))
			return route_effective(found);
	}
	return 0;
}

/*
 * Return the slot for a prefix whose route in table local has type throw, so that the view
 * of main decides: the slot of the longest shorter prefix of main.
 */
static uint32_t
view_slot_of_thrown(const struct rib *rib, const struct vrf *view, const struct route *r)
{
	struct prefix p = route_prefix(r);
	uint32_t slot = 0;

	while (p.len > 0 && slot == 0) {
		p.len--;
		prefix_mask(&p);
		slot = view_slot_of_main(rib, view, &p, NULL);
	}
	return slot != 0 ? slot : rib->contents.suppressed;
}

/* Return the slot that the view has for the prefix of `r`; 0: none. */
static uint32_t
view_slot(const struct rib *rib, const struct vrf *view, const struct route *r)
{
	bool of_main = view->fib->table == RIB_TABLE_MAIN, thrown = false;
	struct prefix p = route_prefix(r);
	const struct route *plain =
		of_main ? route_in_table(rib, RIB_TABLE_MAIN, &p, r) : NULL;
	uint32_t slot, hidden;

	slot = of_main ? view_slot_of_local(rib, view, r, &thrown) : 0;
	if (slot != 0)
		return slot;
	slot = view_slot_of_main(rib, view, &p, r);
	if (slot == 0)
		return plain != NULL && kroute_is_thrown(&rib->kroutes, plain)
			       ? view_slot_of_thrown(rib, view, r)
			       : 0;
	hidden = of_main && !thrown ? hidden_slot(rib, &p, plain) : 0;
	return hidden != 0 ? hidden : slot;
}

int
views_stage(struct rib *rib, const struct route *r)
{
	int all = 0;

	for (uint32_t i = 0; i < rib->vrfs.views.n; i++) {
		struct vrf *view = rib->vrfs.v[rib->vrfs.views.v[i]];
		struct poptrie *pt;
		uint32_t slot;
		int rc;

		if (!view_depends_on(rib, view, r))
			continue;
		pt = fib_trie(&view->fib->tries, (uint8_t)r->family);
		slot = view_slot(rib, view, r);
		rc = slot != 0 ? poptrie_add(pt, r->octet, r->len, slot)
			       : poptrie_del(pt, r->octet, r->len);
		if (rc == -ENOENT)
			continue;
		vrf_staged(rib, view, (uint8_t)r->family);
		if (rc < 0)
			all = rc;
	}
	return all;
}

struct vrf *
views_next(const struct rib *rib, const struct route *r, uint32_t *at, uint32_t *slot)
{
	while (*at < rib->vrfs.views.n) {
		struct vrf *view = rib->vrfs.v[rib->vrfs.views.v[(*at)++]];

		if (view_depends_on(rib, view, r)) {
			*slot = view_slot(rib, view, r);
			return view;
		}
	}
	return NULL;
}

bool
views_are_staged(const struct rib *rib, const struct route *r)
{
	const struct vrf *view;
	uint32_t at = 0, slot;

	while ((view = views_next(rib, r, &at, &slot)) != NULL)
		if (poptrie_exact(fib_trie(&view->fib->tries, (uint8_t)r->family), r->octet,
				  r->len) != slot)
			return false;
	return true;
}

bool
view_has_source(const struct rib *rib, uint32_t table)
{
	for (uint32_t i = 0; i < rib->vrfs.views.n; i++) {
		const struct vrf *view = rib->vrfs.v[rib->vrfs.views.v[i]];

		for (uint32_t n = 0; n < view->n_chain; n++)
			if (view->chain[n] == table)
				return true;
	}
	return false;
}

/* Return true if the routes for sources in `s` are for all sources of the view. */
static bool
source_covers_view(const struct source *s, const struct vrf *view)
{
	return s->n > 0 && s->table == view->fib->table &&
	       s->src.family == view->src.family && s->src.len <= view->src.len &&
	       prefix_covers(&s->src, &view->src.addr);
}

bool
view_set_chain(struct rib *rib, struct vrf *view)
{
	const struct rib_sources *s = &rib->sources;
	uint32_t *chain = mem_or_abort(malloc((s->n + 1) * sizeof(*chain))), n = 0;
	bool changed;

	for (uint32_t at = 0; view->src.len > 0 && at < s->n; at++) {
		uint32_t i = n;

		if (!source_covers_view(&s->v[at], view))
			continue;
		for (; i > 0 && source_of(s, chain[i - 1])->src.len < s->v[at].src.len; i--)
			chain[i] = chain[i - 1];
		chain[i] = source_table(at);
		n++;
	}
	chain[n++] = view->fib->table;
	changed = n != view->n_chain || memcmp(chain, view->chain, n * sizeof(*chain)) != 0;
	free(view->chain);
	view->chain = chain;
	view->n_chain = n;
	return changed;
}
