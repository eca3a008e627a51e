/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compare the FIB with the RIB, between commits, a slice at a time. [rib]
 *
 * There are three comparisons. Each row of the answer is one difference (dist/openapi.yaml,
 * AuditRow):
 *
 *     table   the slot of each route with the slot in the radix table of the trie
 *     lookup  the radix table with the answer of the compiled trie, at the edges of each
 *             prefix, one address outside each edge, and one inside: between two edges of
 *             prefixes all addresses have the same answer
 *     group   the published word and buckets of each slot with its present next hops
 *
 * fpmctl compares the routes of zebra, because it can ask zebra.
 *
 * A repair stages the differing routes and slots again; the commit at the end of the round
 * publishes them.
 */
#include "rib/audit.h"

#include <jansson.h>

#include "rib/index.h"
#include "rib/rib_impl.h"
#include "rib/route.h"
#include "rib/routes.h"
#include "rib/slot.h"
#include "rib/source.h"
#include "rib/view.h"
#include "rib/vrf.h"
#include "rib/words.h"
#include "rib/zebra.h"

#define STEPS_A_SLICE 1024u
#define ROWS_A_ROUTE  6u /* maximum */

enum phase { GROUPS, ROUTES, END };

/* Members of msg_query.cursor. */
enum { PHASE, AT, N_PREFIXES, N_LOOKUPS, N_GROUPS, N_DIFFERENT };

/* Append a row. `table` 0: of no table. */
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

/* Remove and add the route: poptrie does not compile an equal route again. */
static void
route_stage_again(struct rib *rib, const struct route *r)
{
	unsigned int n;
	const struct fib_copy *copy = rib_tries(rib, r->table, &n);

	for (unsigned int c = 0; c < n; c++)
		(void)poptrie_del(fib_trie(&copy[c], r->family), r->octet, r->len);
	(void)route_stage(rib, r);
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
 * Return the next address up or down. It wraps around, which gives an address as good as
 * any other.
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

/* Compare one copy of the trie. Return true if nothing differs. */
static bool
audit_trie(const struct rib *rib, const struct poptrie *pt, struct msg_query *q,
	   const struct route *r)
{
	uint32_t slot = route_fib_slot(rib, r), found;
	struct prefix p = route_prefix(r);
	struct ipaddr last = route_last_address(r);
	const struct ipaddr probe[] = {p.addr, last, route_inside_address(r, &last),
				       address_step(p.addr, r->family, -1),
				       address_step(last, r->family, 1)};
	char prefix[PREFIX_STRLEN], address[PREFIX_STRLEN];
	bool good = true;

	found = poptrie_exact(pt, r->octet, r->len);
	if (found != slot) {
		audit_add_difference(q, "table", r->table, prefix_str(&p, prefix), NULL,
				     slot, found);
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
		audit_add_difference(q, "lookup", r->table, prefix_str(&p, prefix),
				     ipaddr_str(&probe[i], r->family, address), truth,
				     found);
		good = false;
	}
	return good;
}

/*
 * Compare all copies, then the views for rules. The first that differs is reported; a repair
 * stages all.
 */
static void
audit_route(struct rib *rib, struct msg_query *q, const struct route *r)
{
	unsigned int c = 0, n;
	const struct fib_copy *copy = rib_tries(rib, r->table, &n);

	q->cursor[N_PREFIXES] += n > 0;
	while (c < n && audit_trie(rib, fib_trie(&copy[c], r->family), q, r))
		c++;
	if (c == n && !views_are_staged(rib, r)) {
		struct prefix p = route_prefix(r);
		char prefix[PREFIX_STRLEN];

		audit_add_difference(q, "table",
				     source_kernel_table(&rib->sources, r->table),
				     prefix_str(&p, prefix), NULL, route_effective(r), 0);
		c = n + 1;
	}
	if (c != n && q->repair)
		route_stage_again(rib, r);
}

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
		} else if (++q->cursor[PHASE] == END) {
			break;
		} else {
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

/*
 * Falsify the FIB on purpose, for tests of this file. FPM_DATAPLANE_TEST_HOOKS in the
 * environment allows it.
 */
void
audit_break(struct rib *rib, struct msg_query *q)
{
	struct prefix p = q->prefix;
	struct route *r;

	q->done = true;
	prefix_mask(&p);
	r = routes_find(&rib->tables.main, RIB_TABLE_MAIN, &p,
			routes_hash(&rib->tables.main, RIB_TABLE_MAIN, &p));
	if (r == NULL)
		return;
	switch (q->breaking) {
	case BREAK_NOTHING:
		break;
	case BREAK_ROUTE:
		if (r->zslot != 0)
			zebra_withdraw(rib, r);
		break;
	case BREAK_TABLE:
		/*
		 * Change only the last copy: a comparison of the first copy alone finds
		 * nothing.
		 */
		(void)poptrie_del(
			fib_trie(&rib->fib->copy[rib->fib->n_copies - 1], p.family),
			p.addr.octet, p.len);
		rib->pending.staged[p.family == 6] = true;
		break;
	case BREAK_GROUP:
		atomic_store_explicit(&rib->fib->group[route_effective(r)],
				      group_word_single(PATH(PATH_BLACKHOLE, 0)),
				      memory_order_release);
		break;
	}
}
