/* SPDX-License-Identifier: BSD-3-Clause */
/* List the SIDs and their counters, for the ui. [rib] */
#include "rib/sid_row.h"

#include <jansson.h>

#include "fib/sid_number.h"
#include "rib/impl.h"
#include "rib/route_row.h"
#include "rib/routes.h"
#include "rib/vrf.h"

#define SCAN_MAX 16384u /* numbers that a slice examines, with and without a row */

static json_t *
sid_json(const struct rib *rib, uint32_t number, const struct route *r)
{
	const struct shown_route shown = route_shown(rib, r, OF_FIB);
	json_t *route = route_json(rib, r, &shown), *row = json_object();
	static const char *const key[] = {"protocol", "state", "nexthops"};
	struct prefix p = route_prefix(r);
	struct sid_counters c;
	char text[PREFIX_STRLEN];

	sid_number_count(rib, number, &c);
	json_object_set_new(row, "sid", json_string(prefix_str(&p, text)));
	json_object_set_new(row, "table", json_integer(r->table));
	json_object_set_new(row, "vrf", vrf_json(vrf_find(rib, r->table)));
	for (unsigned int i = 0; i < sizeof(key) / sizeof(key[0]); i++)
		json_object_set(row, key[i], json_object_get(route, key[i]));
	json_object_set_new(row, "packets", json_integer((json_int_t)c.packets));
	json_object_set_new(row, "bytes", json_integer((json_int_t)c.bytes));
	json_object_set_new(row, "errors", json_integer((json_int_t)c.errors));
	json_decref(route);
	return row;
}

/* Return true if the query wants the SID: of packets to an address, or inside a prefix. */
static bool
sid_is_wanted(const struct rib *rib, const struct msg_query *q, uint32_t number,
	      const struct prefix *p, uint32_t table)
{
	if (!q->has_prefix)
		return true;
	if (q->prefix.family != 6)
		return false;
	if (q->longest)
		return prefix_covers(p, &q->prefix.addr) &&
		       fib_sid_number_find(rib->fib, table, q->prefix.addr.octet) == number;
	return q->prefix.len <= p->len && prefix_covers(&q->prefix, &p->addr);
}

/* Add the row of a number, if a SID has it and the query wants it. */
static void
sid_add_row(struct rib *rib, struct msg_query *q, uint32_t number)
{
	struct prefix p = fib_sid_number_prefix(rib->fib, number);
	uint32_t table = rib->fib->sid_numbers->of[number].table;
	const struct route *r;

	if (p.len == 0 || !sid_is_wanted(rib, q, number, &p, table))
		return;
	r = tables_find(&rib->tables, table, &p);
	if (r != NULL && route_effective(r) != 0)
		json_array_append_new(q->rows, sid_json(rib, number, r));
}

void
sids_slice(struct rib *rib, struct msg_query *q)
{
	uint32_t high =
		atomic_load_explicit(&rib->fib->sid_numbers->high, memory_order_relaxed);

	for (uint32_t n = 0; n < SCAN_MAX && json_array_size(q->rows) < q->max; n++) {
		if (++q->cursor[0] > high) {
			q->done = true;
			return;
		}
		sid_add_row(rib, q, (uint32_t)q->cursor[0]);
	}
}
