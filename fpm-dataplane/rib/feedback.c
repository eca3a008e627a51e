/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Report to zebra for each of its routes whether it is forwarded or has failed. [rib]
 *
 * A route is reported a grace period after the commit that contains it, because no
 * forwarder can then still use the earlier state. Each NEWROUTE is answered once, even if
 * it changed nothing (doc/fpm.md, 8). Routes that the dataplane does not forward are not
 * reported: routes of protocol kernel, and routes of tables without a FIB.
 *
 * When a trie lacks memory, the routes that are missing in it have failed. rib does not
 * record for which routes it reported this, because memory is short. When all routes are in
 * the trie, all routes of the session are reported again.
 */
#include "rib/feedback.h"

#include <stdlib.h>

#include "rib/index.h"
#include "rib/reclaim.h"
#include "rib/impl.h"
#include "rib/route.h"
#include "rib/routes.h"
#include "rib/slot.h"
#include "rib/vrf.h"

struct feedback_item {
	struct prefix prefix;
	uint8_t protocol, rtm_type;
	uint32_t table;
	uint32_t slot; /* 0: refused */
};

/* Return true if zebra wants reports, and the table has a FIB. */
static bool
feedback_covers_table(const struct rib *rib, uint32_t table)
{
	unsigned int n;

	return rib->conf.feedback && rib_tries(rib, table, &n) != NULL;
}

static void
feedback_push(struct rib *rib, const struct feedback_item *item)
{
	if (rib->feedback.n == rib->feedback.cap) {
		rib->feedback.cap = rib->feedback.cap == 0 ? 256 : rib->feedback.cap * 2;
		rib->feedback.v = mem_or_abort(realloc(
			rib->feedback.v, rib->feedback.cap * sizeof(*rib->feedback.v)));
	}
	rib->feedback.v[rib->feedback.n++] = *item;
}

void
feedback_put(struct rib *rib, const struct route *r)
{
	if (!feedback_covers_table(rib, r->table))
		return;
	feedback_push(rib, &(struct feedback_item){.prefix = route_prefix(r),
						   .table = r->table,
						   .protocol = r->protocol,
						   .rtm_type = r->rtm_type,
						   .slot = r->zslot});
}

void
feedback_refuse(struct rib *rib, const struct fpm_event *ev)
{
	uint32_t table = table_of_event(ev);

	if (!feedback_covers_table(rib, table))
		return;
	feedback_push(rib, &(struct feedback_item){.prefix = ev->prefix,
						   .table = table,
						   .protocol = ev->protocol,
						   .rtm_type = ev->rtm_type});
}

bool
feedback_resend(struct rib *rib)
{
	uint32_t end = rib->feedback.resend_at + RIB_SLICE;

	if (!resync_has_passed(&rib->resync, rib->feedback.resend_lap) ||
	    rib->resync.nomem || rib->pending.failed || rib->session.vrfs_replaying)
		return false; /* a later round continues */
	for (; rib->feedback.resend_at < end &&
	       rib->feedback.resend_at <= tables_walk_end(&rib->tables);
	     rib->feedback.resend_at++) {
		const struct route *r =
			tables_walk_at(&rib->tables, rib->feedback.resend_at);

		if (r != NULL && r->zslot != 0 && r->gen == rib->session.gen)
			feedback_put(rib, r);
	}
	if (rib->feedback.resend_at <= tables_walk_end(&rib->tables))
		return true;
	rib->feedback.resend_at = 0;
	return false;
}

/* Return true if a next hop got no adjacency because all were in use. */
static bool
slot_lacks_adjacency(const struct slot *s)
{
	for (uint32_t i = 0; i < s->n_legs; i++) {
		const struct leg *leg = &s->leg[i];

		if (leg->adj == 0 && leg->hop.gw_family != 0 && leg->link != NULL &&
		    leg->link->ifidx != 0)
			return true;
	}
	return false;
}

/*
 * Return true if the route is not forwarded although zebra assumes it: the next hop is not
 * supported, or a table is full.
 */
static bool
feedback_is_unforwarded(const struct rib *rib, const struct feedback_item *s)
{
	fib_path path;

	if (s->slot == 0 || s->slot == rib->contents.unresolved)
		return true;
	path = fib_group_path(rib->fib, s->slot, 0);
	return path_is_unsupported(path) ||
	       (path_kind(path) == PATH_DOWN &&
		slot_lacks_adjacency(slot_at(&rib->slots, s->slot)));
}

/* Return true if the prefix is missing in its trie for lack of memory. */
static bool
feedback_is_not_in_trie(struct rib *rib, const struct feedback_item *s)
{
	const struct vrf *vrf = vrf_find(rib, s->table);
	const bool *staged = vrf == NULL ? rib->pending.staged : vrf->staged;
	const struct route *r;

	if (staged[s->prefix.family == 6])
		return true; /* the commit has failed */
	if (!rib->resync.nomem &&
	    (vrf == NULL || resync_has_passed(&rib->resync, vrf->lap)))
		return false;
	r = tables_find(&rib->tables, s->table, &s->prefix);
	return r != NULL && !route_is_staged(rib, r);
}

static bool
feedback_has_failed(struct rib *rib, const struct feedback_item *s)
{
	if (feedback_is_unforwarded(rib, s))
		return true;
	if (!feedback_is_not_in_trie(rib, s))
		return false;
	rib->feedback.resend_at = 1;
	return true;
}

void
feedback_seal(struct rib *rib)
{
	struct reclaim *p = rib->feedback.n == 0 ? NULL : reclaim_open(rib);
	struct msg_feedback *m = NULL;

	for (uint32_t i = 0; i < rib->feedback.n; i++) {
		const struct feedback_item *s = &rib->feedback.v[i];

		if (m == NULL || m->n == FPM_FEEDBACK_MAX) {
			m = msg_new(MSG_FEEDBACK, sizeof(*m));
			m->gen = rib->session.gen;
			*p->feedback_end = m;
			p->feedback_end = &m->next;
		}
		m->route[m->n++] =
			(struct fpm_feedback){.prefix = s->prefix,
					      .table = s->table,
					      .protocol = s->protocol,
					      .rtm_type = s->rtm_type,
					      .failed = feedback_has_failed(rib, s)};
	}
	rib->feedback.n = 0;
}

void
feedback_send(struct rib *rib, struct msg_feedback *m)
{
	struct msg_feedback *next;

	for (; m != NULL; m = next) {
		next = m->next;
		if (rib->stopping)
			msg_free(&m->m);
		else
			worker_send(rib->conf.fpm, &m->m);
	}
}

void
feedback_clear(struct rib *rib)
{
	rib->feedback.n = rib->feedback.resend_at = 0;
}

void
rib_feedback_free(struct rib *rib)
{
	free(rib->feedback.v);
}
