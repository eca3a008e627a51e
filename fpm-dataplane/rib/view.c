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

/* Return the slot of a table's route for the prefix of `r`; 0: it has none. */
static uint32_t
slot_in_table(const struct rib *rib, uint32_t table, const struct route *r)
{
	struct prefix p = route_prefix(r);
	const struct route *found =
		table == r->table ? r : tables_find(&rib->tables, table, &p);

	return found == NULL ? 0 : route_effective(found);
}

/* Return the route of table main and local for the prefix of `r`; NULL: none. */
static const struct route *
plain_route(const struct rib *rib, const struct route *r)
{
	struct prefix p = route_prefix(r);

	return r->table == RIB_TABLE_MAIN ? r
					  : tables_find(&rib->tables, RIB_TABLE_MAIN, &p);
}

/*
 * Return true if the route is of table local, which Linux looks up before routes of one TOS
 * (fib_find_alias()) and source-specific routes.
 */
static bool
local_is_first(const struct rib *rib, const struct route *plain)
{
	uint32_t best = plain == NULL ? 0 : kroute_best(&rib->kroutes, &rib->links, plain);

	return best != 0 && rib->kroutes.v[best].is_local;
}

/* Return the slot of the view of main where table local hides `r`; 0: it does not. */
static uint32_t
hidden_slot(const struct rib *rib, const struct route *r, const struct route *plain)
{
	struct prefix p = route_prefix(r);

	return rib->contents.hidden[kroute_hider(&rib->kroutes, &rib->links, &p, plain)];
}

/*
 * Return true if the plain route of a prefix is hidden, because the prefix also has a
 * source-specific route. Linux does the same (fib6_node_lookup_1()), except for the default
 * route. A source-specific route of table local hides no route of main, which is another
 * table.
 */
static bool
plain_is_hidden(const struct rib *rib, const struct vrf *view, const struct route *r)
{
	const struct rib_sources *s = &rib->sources;
	struct prefix p = route_prefix(r);
	const struct route *found;

	for (uint32_t at = 0; view->hides && view->view == 6 && r->len > 0 && at < s->n;
	     at++) {
		if (s->v[at].table != view->fib->table || s->v[at].n == 0)
			continue;
		found = source_table(at) == r->table
				? r
				: tables_find(&rib->tables, source_table(at), &p);
		if (found != NULL &&
		    kroute_main_slot(&rib->kroutes, &rib->links, found) != 0)
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

/* Return the slot of the view for a prefix without the routes of table local; 0: none. */
static uint32_t
view_slot_of_main(const struct rib *rib, const struct vrf *view, const struct prefix *p)
{
	for (uint32_t i = 0; i < view->n_chain; i++) {
		uint32_t table = view->chain[i], slot;
		const struct route *r = tables_find(&rib->tables, table, p);

		slot = r == NULL ? 0
		       : table == RIB_TABLE_MAIN
			       ? kroute_main_slot(&rib->kroutes, &rib->links, r)
			       : route_effective(r);
		if (slot != 0 && i == view->n_chain - 1 && plain_is_hidden(rib, view, r))
			slot = 0;
		if (slot != 0)
			return unless_suppressed(rib, view, r, slot);
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
		slot = view_slot_of_main(rib, view, &p);
	}
	return slot != 0 ? slot : rib->contents.suppressed;
}

/* Return the slot that the view has for the prefix of `r`; 0: none. */
static uint32_t
view_slot(const struct rib *rib, const struct vrf *view, const struct route *r)
{
	bool of_main = view->fib->table == RIB_TABLE_MAIN;
	const struct route *plain = of_main ? plain_route(rib, r) : NULL;
	uint32_t slot = 0, hidden, i = 0;

	if (of_main && local_is_first(rib, plain))
		return route_effective(plain);
	for (; i < view->n_chain && slot == 0; i++)
		slot = slot_in_table(rib, view->chain[i], r);
	if (i == view->n_chain && slot != 0 && plain_is_hidden(rib, view, r))
		slot = 0;
	if (slot == 0)
		return plain != NULL && kroute_is_thrown(&rib->kroutes, plain)
			       ? view_slot_of_thrown(rib, view, r)
			       : 0;
	hidden = of_main ? hidden_slot(rib, r, plain) : 0;
	return hidden != 0 ? hidden : unless_suppressed(rib, view, r, slot);
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
