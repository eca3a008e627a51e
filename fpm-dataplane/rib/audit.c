/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compare the FIB with the RIB, between commits, a slice at a time. [rib]
 *
 * The audit covers the FIBs of main, of VRFs and of rules, and the label table. It compares
 * in four ways.
 * Each row of the answer is one difference (dist/openapi.yaml, AuditRow):
 *
 *     table   the slot of each route with the slot in the radix table of the trie, and with
 *             the slot in the trie of each view, and a prefix of table local with its slot in
 *             the trie of each VRF; then each prefix of a radix table with the routes
 *     lookup  the radix table with the answer of the compiled trie, at the edges of each
 *             prefix, one address outside each edge, and one inside: between two edges of
 *             prefixes all addresses have the same answer
 *     label   the slot of each label's route with the slot in the label table, which must
 *             have no other labels (reported as a row of `table`)
 *     group   the published word and buckets of each slot with its present next hops
 *
 * fpmctl compares the RIB with zebra's routes, because fpmctl can ask zebra.
 *
 * A repair stages the differing routes and slots again; the commit at the end of the round
 * publishes them.
 */
#include "rib/audit.h"

#include <jansson.h>
#include <string.h>

#include "base/inet.h"
#include "fib/label.h"
#include "rib/index.h"
#include "rib/kernel.h"
#include "rib/labels.h"
#include "rib/local.h"
#include "rib/impl.h"
#include "rib/route.h"
#include "rib/routes.h"
#include "rib/rules.h"
#include "rib/slot.h"
#include "rib/source.h"
#include "rib/view.h"
#include "rib/vrf.h"
#include "rib/words.h"
#include "rib/withdraw.h"

#define STEPS_A_SLICE 1024u
#define ROWS_A_ROUTE  6u /* maximum */

#define LABELS_A_STEP 1024u

enum phase { GROUPS, ROUTES, LABELS, TRIES, END };

/*
 * Indices into msg_query.cursor. In the phase TRIES, AT holds the number of the trie, a bit
 * that is set if a last prefix exists, and the length of that prefix. Its address is in
 * ADDR and the members after ADDR.
 */
enum { PHASE, AT, N_PREFIXES, N_LOOKUPS, N_GROUPS, N_DIFFERENT, ADDR };

/* Append a row for one difference. `table` 0: it belongs to no table. */
static void
audit_add_difference(struct msg_query *q, const char *what, uint32_t table,
		     const char *prefix, const char *address, uint32_t group,
		     uint32_t found)
{
	q->cursor[N_DIFFERENT]++;
	json_array_append_new(
		q->rows,
		json_pack("{s:s, s:o, s:s?, s:s?, s:I, s:I}", "what", what, "table",
			  table == 0 ? json_null() : json_integer((json_int_t)table),
			  "prefix", prefix, "address", address, "group", (json_int_t)group,
			  "found", (json_int_t)found));
}

static uint32_t
trie_lookup(const struct poptrie *pt, uint8_t family, const struct ipaddr *addr)
{
	return family == 4 ? poptrie4_lookup(pt, ipaddr_v4(addr))
			   : poptrie6_lookup(pt, addr->octet);
}

/*
 * Remove the route from all tries, then add it again: poptrie compiles nothing if it gets a
 * route that it has.
 */
static void
route_stage_again(struct rib *rib, const struct route *r)
{
	unsigned int n;
	const struct fib_copy *copy = rib_tries(rib, r->table, &n);
	const struct vrf *view;
	uint32_t at = 0, slot;

	for (unsigned int c = 0; c < n; c++)
		(void)poptrie_del(fib_trie(&copy[c], r->family), r->octet, r->len);
	while ((view = views_next(rib, r, &at, &slot)) != NULL)
		(void)poptrie_del(fib_trie(&view->fib->tries, (uint8_t)r->family), r->octet,
				  r->len);
	(void)route_stage(rib, r);
	if (local_has_records(rib, r)) {
		uint32_t number = 0;
		struct prefix p = route_prefix(r);
		struct vrf *vrf;

		while ((vrf = local_next_vrf(rib, &number)) != NULL)
			(void)poptrie_del(fib_trie(&vrf->fib->tries, p.family), r->octet,
					  r->len);
		locals_stage(rib, &p);
	}
}

/* Return the last address of the prefix: all bits after its length are set. */
static struct ipaddr
route_last_address(const struct route *r)
{
	struct ipaddr a = route_addr(r);

	for (unsigned int bit = r->len; bit < family_bits(r->family); bit++)
		a.octet[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
	return a;
}

/*
 * Return the next address up or down. Wrap around at the end of the address space: the
 * audit may look up any address.
 */
static struct ipaddr
address_step(struct ipaddr a, uint8_t family, int step)
{
	for (unsigned int i = family_octets(family); i-- > 0;) {
		a.octet[i] = (uint8_t)(a.octet[i] + step);
		if (a.octet[i] != (step > 0 ? 0 : 0xff))
			break;
	}
	return a;
}

static struct ipaddr
route_inside_address(const struct route *r, const struct ipaddr *last)
{
	struct ipaddr a = route_addr(r);
	uint64_t bits = hash32((uint32_t)((uintptr_t)r / sizeof(*r)));

	for (unsigned int i = 0; i < family_octets(r->family); i++)
		a.octet[i] |= (uint8_t)((a.octet[i] ^ last->octet[i]) & bits >> i % 8 * 8);
	return a;
}

/* Compare a trie, which must have `slot` for the prefix. Return true if nothing differs. */
static bool
audit_trie(const struct poptrie *pt, struct msg_query *q, const struct route *r,
	   uint32_t table, uint32_t slot)
{
	uint32_t found;
	struct prefix p = route_prefix(r);
	struct ipaddr last = route_last_address(r);
	const struct ipaddr probe[] = {p.addr, last, route_inside_address(r, &last),
				       address_step(p.addr, r->family, -1),
				       address_step(last, r->family, 1)};
	char prefix[PREFIX_STRLEN], address[PREFIX_STRLEN];
	bool good = true;

	found = poptrie_exact(pt, r->octet, r->len);
	if (found != slot) {
		audit_add_difference(q, "table", table, prefix_str(&p, prefix), NULL, slot,
				     found);
		good = false;
	}
	for (unsigned int i = 0; i < sizeof(probe) / sizeof(probe[0]); i++) {
		unsigned int len;
		uint32_t truth =
			poptrie_match(pt, probe[i].octet, family_bits(r->family), &len);

		q->cursor[N_LOOKUPS]++;
		found = trie_lookup(pt, r->family, &probe[i]);
		if (found == truth)
			continue;
		audit_add_difference(q, "lookup", table, prefix_str(&p, prefix),
				     ipaddr_str(&probe[i], r->family, address), truth,
				     found);
		good = false;
	}
	return good;
}

/* Return true if some FIB must have the source-specific route, but no FIB has it. */
static bool
source_is_in_no_view(const struct rib *rib, const struct route *r)
{
	uint32_t table = source_kernel_table(&rib->sources, r->table);

	return source_is_table(r->table) && route_effective(r) != 0 &&
	       (table == RIB_TABLE_MAIN || vrf_find(rib, table) != NULL) &&
	       !rules_are_default(rib, r->family == 6) && !view_has_source(rib, r->table);
}

/* Compare the views of rules. Return true if nothing differs. */
static bool
audit_views(const struct rib *rib, struct msg_query *q, const struct route *r)
{
	uint32_t table = source_kernel_table(&rib->sources, r->table), at = 0, slot;
	struct prefix p = route_prefix(r);
	const struct vrf *view;
	char prefix[PREFIX_STRLEN];

	if (source_is_in_no_view(rib, r)) {
		audit_add_difference(q, "table", table, prefix_str(&p, prefix), NULL,
				     route_effective(r), 0);
		return false;
	}
	while ((view = views_next(rib, r, &at, &slot)) != NULL)
		if (!audit_trie(fib_trie(&view->fib->tries, (uint8_t)r->family), q, r,
				table, slot))
			return false;
	return true;
}

/* Compare a prefix of table local in the FIBs of VRFs. Return true if nothing differs. */
static bool
audit_local(const struct rib *rib, struct msg_query *q, const struct route *r)
{
	struct prefix p = route_prefix(r);
	const struct vrf *vrf;
	uint32_t at = 0;

	if (!local_has_records(rib, r))
		return true;
	while ((vrf = local_next_vrf(rib, &at)) != NULL) {
		uint32_t table = vrf->fib->table;
		const struct route *own = tables_find(&rib->tables, table, &p);

		if (vrf->has_local &&
		    !audit_trie(fib_trie(&vrf->fib->tries, p.family), q, r, table,
				local_fib_slot(rib, table, &p, own)))
			return false;
	}
	return true;
}

/* Compare the slot of a label's route with the slot that forwarders get for the label. */
static void
audit_label(struct rib *rib, struct msg_query *q, const struct route *r)
{
	struct prefix p = route_prefix(r);
	char prefix[PREFIX_STRLEN];

	q->cursor[N_PREFIXES]++;
	if (label_is_staged(rib, r))
		return;
	audit_add_difference(q, "table", 0, prefix_str(&p, prefix), NULL,
			     route_effective(r), 0);
	if (q->repair)
		label_stage(rib, r);
}

/* Compare the next part of the forwarders' label table with rib->labels.want. */
static void
audit_labels(struct rib *rib, struct msg_query *q)
{
	uint32_t begin = (uint32_t)q->cursor[AT];
	uint32_t end = begin - begin % LABELS_A_STEP + LABELS_A_STEP;
	uint32_t label = labels_next_wrong(rib, begin, end);
	struct prefix p = {.family = FAMILY_LABEL, .len = 32};
	char prefix[PREFIX_STRLEN];

	q->cursor[AT] = label == end ? end : label + 1;
	if (label == end)
		return;
	put_be32(p.addr.octet, label);
	audit_add_difference(q, "table", 0, prefix_str(&p, prefix), NULL,
			     rib->labels.want[label], rib->fib->label[label]);
	if (q->repair)
		label_stage_again(rib, label);
}

/*
 * Compare a route with all copies of the tries, with the views for rules, and for table
 * local with the FIBs of VRFs. Report the first trie that differs. A repair stages the
 * route in all of them.
 */
static void
audit_route(struct rib *rib, struct msg_query *q, const struct route *r)
{
	unsigned int c = 0, n;
	const struct fib_copy *copy = rib_tries(rib, r->table, &n);
	uint32_t slot = route_fib_slot(rib, r);

	if (r->family == FAMILY_LABEL) {
		audit_label(rib, q, r);
		return;
	}
	q->cursor[N_PREFIXES] += n > 0 || source_is_table(r->table);
	while (c < n && audit_trie(fib_trie(&copy[c], r->family), q, r, r->table, slot))
		c++;
	if (c == n && audit_views(rib, q, r) && audit_local(rib, q, r))
		return;
	if (q->repair)
		route_stage_again(rib, r);
}

/* --- prefixes of a trie without a route ----------------------------------------------- */

/* One trie of a walk over all tries of all FIBs. */
struct walked_trie {
	struct poptrie *pt;
	struct vrf *vrf; /* NULL: a trie of main */
	uint8_t family;
};

/*
 * Set *out to trie `number`, from 0; its pt is NULL if there is none. Return false at the
 * end.
 */
static bool
trie_at(const struct rib *rib, uint32_t number, struct walked_trie *out)
{
	uint32_t of = number / 2, n_copies = rib->fib->n_copies;

	*out = (struct walked_trie){.family = number % 2 == 0 ? 4 : 6};
	if (of < n_copies) {
		out->pt = fib_trie(&rib->fib->copy[of], out->family);
		return true;
	}
	of = of - n_copies + 1;
	if (rib->vrfs.n == 0 || of >= FIB_NUMBERS)
		return false;
	out->vrf = rib->vrfs.v[of];
	if (out->vrf != NULL &&
	    (out->vrf->view == 0 || view_has_family(out->vrf, out->family)))
		out->pt = fib_trie(&out->vrf->fib->tries, out->family);
	return true;
}

/* Return true if a table of the trie has a route for the prefix. */
static bool
trie_has_route(struct rib *rib, const struct walked_trie *trie, const struct prefix *p)
{
	const struct vrf *vrf = trie->vrf;
	uint32_t n = vrf != NULL && vrf->view != 0 ? vrf->n_chain : 1;
	const struct route *r;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t table = vrf == NULL      ? RIB_TABLE_MAIN
				 : vrf->view == 0 ? vrf->fib->table
						  : vrf->chain[i];

		if (tables_find(&rib->tables, table, p) != NULL)
			return true;
	}
	/* The FIB of a VRF of the kernel also has the prefixes of table local. */
	if (vrf == NULL || vrf_is_for_rules(vrf) || rib->locals.behind[p->family == 6])
		return false;
	r = tables_find(&rib->tables, RIB_TABLE_MAIN, p);
	return r != NULL && local_has_records(rib, r);
}

static void
trie_drop(struct rib *rib, const struct walked_trie *trie, const struct prefix *p)
{
	(void)poptrie_del(trie->pt, p->addr.octet, p->len);
	if (trie->vrf != NULL)
		vrf_staged(rib, trie->vrf, trie->family);
	else
		rib->pending.staged[trie->family == 6] = true;
}

/* Compare the next prefix of the tries with the routes. Return false at the end of all. */
static bool
audit_next_prefix(struct rib *rib, struct msg_query *q)
{
	uint32_t number = (uint32_t)(q->cursor[AT] >> 16), slot = POPTRIE_NONE;
	unsigned int len = q->cursor[AT] & 0xff;
	bool begun = (q->cursor[AT] & 0x100) != 0;
	struct walked_trie trie;
	struct prefix p = {0};
	char text[PREFIX_STRLEN];

	if (!trie_at(rib, number, &trie))
		return false;
	memcpy(p.addr.octet, &q->cursor[ADDR], sizeof(p.addr.octet));
	if (trie.pt != NULL)
		slot = poptrie_next(trie.pt, p.addr.octet, &len, !begun);
	if (slot == POPTRIE_NONE) {
		q->cursor[AT] = (uint64_t)(number + 1) << 16;
		memset(&q->cursor[ADDR], 0, sizeof(p.addr.octet));
		return true;
	}
	q->cursor[AT] = (uint64_t)number << 16 | 0x100 | len;
	memcpy(&q->cursor[ADDR], p.addr.octet, sizeof(p.addr.octet));
	p.family = trie.family;
	p.len = (uint8_t)len;
	if (trie_has_route(rib, &trie, &p))
		return true;
	audit_add_difference(q, "table",
			     trie.vrf == NULL ? RIB_TABLE_MAIN : trie.vrf->fib->table,
			     prefix_str(&p, text), NULL, 0, slot);
	if (q->repair)
		trie_drop(rib, &trie, &p);
	return true;
}

/* --- groups --------------------------------------------------------------------------- */

static void
audit_group(struct rib *rib, struct msg_query *q, struct slot *s)
{
	q->cursor[N_GROUPS]++;
	if (slot_is_current(rib, s))
		return;
	audit_add_difference(q, "group", 0, NULL, NULL, s->number, s->number);
	if (q->repair)
		slot_dirty(rib, s, SLOT_PATHS);
}

void
audit_slice(struct rib *rib, struct msg_query *q)
{
	for (uint32_t steps = 0; steps < STEPS_A_SLICE; steps++) {
		uint32_t at;

		if (json_array_size(q->rows) + ROWS_A_ROUTE > q->max)
			return;
		if (q->cursor[PHASE] == TRIES) {
			if (audit_next_prefix(rib, q))
				continue;
			q->cursor[PHASE] = END;
			break;
		}
		if (q->cursor[PHASE] == LABELS && q->cursor[AT] < LABELS_ALL) {
			audit_labels(rib, q);
			continue;
		}
		at = (uint32_t)++q->cursor[AT];
		if (q->cursor[PHASE] == GROUPS && at <= rib->slots.high) {
			struct slot *s = slot_at(&rib->slots, at);

			if (s->kind != SLOT_FREE && s->kind != SLOT_RETIRED)
				audit_group(rib, q, s);
		} else if (q->cursor[PHASE] == ROUTES &&
			   at <= tables_walk_end(&rib->tables)) {
			const struct route *r = tables_walk_at(&rib->tables, at);

			if (r != NULL)
				audit_route(rib, q, r);
		} else {
			q->cursor[PHASE]++;
			q->cursor[AT] = 0;
		}
	}
	if (q->cursor[PHASE] != END)
		return;
	json_array_append_new(q->rows,
			      json_pack("{s:s, s:I, s:I, s:I, s:I}", "what", "checked",
					"prefixes", (json_int_t)q->cursor[N_PREFIXES],
					"lookups", (json_int_t)q->cursor[N_LOOKUPS],
					"groups", (json_int_t)q->cursor[N_GROUPS],
					"differences", (json_int_t)q->cursor[N_DIFFERENT]));
	q->done = true;
}

/* --- tests ---------------------------------------------------------------------------- */

/* Return the route of main for the prefix, or else its route of another table. */
static struct route *
route_to_break(struct rib *rib, const struct prefix *p)
{
	struct routes *other = &rib->tables.other;
	struct route *r = tables_find(&rib->tables, RIB_TABLE_MAIN, p);

	for (uint32_t i = 1; r == NULL && i <= other->high; i++) {
		struct route *at = route_at(other, i);
		struct prefix of = route_prefix(at);

		if (at->family != 0 && prefix_equal(&of, p))
			r = at;
	}
	return r;
}

/*
 * Remove the route from one trie. Use the last of several copies, so that a comparison of
 * the first copy alone finds nothing. For a source-specific route, use the first view.
 */
static void
break_trie(struct rib *rib, const struct route *r)
{
	struct walked_trie trie = {.family = (uint8_t)r->family};
	struct prefix p = route_prefix(r);
	uint32_t at = 0, slot = 0;
	unsigned int n;
	const struct fib_copy *copy = rib_tries(rib, r->table, &n);

	if (n > 0) {
		trie.pt = fib_trie(&copy[n - 1], trie.family);
		trie.vrf = r->table == RIB_TABLE_MAIN ? NULL : vrf_find(rib, r->table);
	} else {
		while (slot == 0 && (trie.vrf = views_next(rib, r, &at, &slot)) != NULL)
			trie.pt = fib_trie(&trie.vrf->fib->tries, trie.family);
	}
	if (slot != 0 || n > 0)
		trie_drop(rib, &trie, &p);
}

/*
 * Falsify the RIB or the FIB on purpose, for tests of this file. FPM_DATAPLANE_TEST_HOOKS
 * in the environment allows it.
 */
void
audit_break(struct rib *rib, struct msg_query *q)
{
	struct prefix p = q->prefix;
	struct route *r;

	q->done = true;
	prefix_mask(&p);
	r = route_to_break(rib, &p);
	if (r == NULL)
		return;
	switch (q->breaking) {
	case BREAK_NOTHING:
		break;
	case BREAK_ROUTE:
		if (r->zslot != 0)
			zebra_withdraw(rib, r);
		else
			kernel_forget(rib, r);
		break;
	case BREAK_TABLE:
		break_trie(rib, r);
		break;
	case BREAK_GROUP:
		/* Release, as in words.c. The blackhole leads to no further data. */
		atomic_store_explicit(&rib->fib->group[route_effective(r)],
				      group_word_single(PATH(PATH_BLACKHOLE, 0)),
				      memory_order_release);
		break;
	}
}
