/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Views: FIBs that have a selection of the routes of a table. [rib]. A rule with
 * suppress_prefixlength uses a view in which the short prefixes are of type throw, because
 * a lookup in a trie does not return the length of the prefix. Where a table has
 * source-specific IPv6 routes, packets from each source use a view that also has the routes
 * for the source, and all other packets use a view without the plain routes that Linux
 * hides from them. Where a table has IPv4 routes of one TOS, packets of this TOS use a view
 * that has these routes in place of the plain routes of the same prefixes.
 */
#ifndef RIB_VIEW_H
#define RIB_VIEW_H

#include <stdbool.h>
#include <stdint.h>

struct rib;
struct route;
struct vrf;

/*
 * Fill the chain of a view. First come the tables of the sources that cover the source of
 * the view, the longest prefix first. The table of the view is last. Return true if the
 * chain has changed: then the walk of resync.c is due.
 */
bool view_set_chain(struct rib *rib, struct vrf *view);
/*
 * Stage a route in all views that have its table. Return 0, or -ENOMEM if a view lacks a
 * change.
 */
int views_stage(struct rib *rib, const struct route *r);
/* Return true if every view has the route that it must have for the prefix of `r`. */
bool views_are_staged(const struct rib *rib, const struct route *r);
/*
 * Return the next view after `*at` that may have a route for the prefix of `r` because of
 * `r`. `*at` is 0 before the first call. Set *slot to the slot that this route must have;
 * 0: the view must have no route. Return NULL after the last view.
 */
struct vrf *views_next(const struct rib *rib, const struct route *r, uint32_t *at,
		       uint32_t *slot);
/* Return true if a view has the routes of a table for which source_is_table() is true. */
bool view_has_source(const struct rib *rib, uint32_t table);

#endif
