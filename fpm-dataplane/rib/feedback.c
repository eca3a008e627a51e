/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is told to zebra of the routes it sent: forwarded, or failed. [rib].
 *
 * A route is acknowledged when a grace period has passed since the commit that it is in: no
 * forwarder can then still answer as before. Each NEWROUTE is answered once, also one that
 * changed nothing (FPM.md, 8); nothing is said of routes that are not ours to forward: the
 * kernel's own, and those of other tables.
 */
#include <stdlib.h>

#include "rib/rib_impl.h"

struct said {
	struct prefix prefix;
	uint8_t protocol, rtm_type;
	uint32_t slot;
};

void
feedback_put(struct rib *rib, const struct route *r)
{
	if (!rib->conf.feedback || r->table != RIB_TABLE_MAIN)
		return;
	if (rib->n_said == rib->cap_said) {
		rib->cap_said = rib->cap_said == 0 ? 256 : rib->cap_said * 2;
		rib->said = must(realloc(rib->said, rib->cap_said * sizeof(*rib->said)));
	}
	rib->said[rib->n_said++] = (struct said){.prefix = route_prefix(r),
						 .protocol = r->protocol,
						 .rtm_type = r->rtm_type,
						 .slot = r->zslot};
}

/* Not forwarded, though zebra believes so: its kind is not supported, or there is no room. */
static bool
has_failed(const struct rib *rib, const struct said *s)
{
	const struct route *r;

	if (path_kind(fib_group_path(rib->fib, s->slot, 0)) == PATH_ENCAP)
		return true;
	if (!rib->resync)
		return s->slot == rib->slot_unresolved;
	/* A trie is out of memory: is it this prefix that is missing? */
	r = routes_find(&rib->main, RIB_TABLE_MAIN, &s->prefix,
			routes_hash(&rib->main, RIB_TABLE_MAIN, &s->prefix));
	return r != NULL &&
	       poptrie_exact(route_trie(rib, r), r->octet, r->len) != route_effective(r);
}

void
feedback_seal(struct rib *rib)
{
	struct reclaim *p = rib->n_said == 0 ? NULL : rib_pending(rib);
	struct msg_feedback *m = NULL;

	for (uint32_t i = 0; i < rib->n_said; i++) {
		const struct said *s = &rib->said[i];

		if (m == NULL || m->n == FPM_FEEDBACK_MAX) {
			m = msg_new(MSG_FEEDBACK, sizeof(*m));
			m->gen = rib->session.gen;
			*p->feedback_end = m;
			p->feedback_end = &m->next;
		}
		m->route[m->n++] = (struct fpm_feedback){.prefix = s->prefix,
							 .protocol = s->protocol,
							 .rtm_type = s->rtm_type,
							 .failed = has_failed(rib, s)};
	}
	rib->n_said = 0;
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
