/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * List all routes for `fpmctl audit`, a slice at a time. [rib]
 *
 * A full table as rows of `show routes` costs the daemon and fpmctl 25 us a route, most of
 * it for JSON. Most routes of a slice differ in the prefix only. So the routes of a slice
 * that have the same next hops, table and source share a row, which has the array
 * `prefixes` in place of `prefix`.
 *
 * A prefix has a row for the route in force. If that is a route of the kernel, zebra's
 * route has a row as well, with `hidden`.
 */
#include "rib/packed.h"

#include <jansson.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "base/inet.h"
#include "rib/kroute.h"
#include "rib/impl.h"
#include "rib/route.h"
#include "rib/route_row.h"
#include "rib/routes.h"

#define SLICE_ROUTES 2048u
#define ROWS_MAX     256u
#define PLACES       (4 * ROWS_MAX) /* of the hash of rows; a power of two */

/* The rows of a slice. */
struct pack {
	struct msg_query *q;
	uint64_t key[ROWS_MAX];
	json_t *prefixes[ROWS_MAX]; /* the array `prefixes` of each row */
	uint16_t place[PLACES];     /* row number plus 1; 0: none */
	uint32_t n;
};

/* Return a number that is equal for routes whose rows differ in the prefix only. */
static uint64_t
pack_key(const struct rib *rib, const struct route *r, const struct shown_route *shown,
	 bool hidden)
{
	const struct kroute *kr = shown->kr;
	uint64_t type = kr == NULL ? r->rtm_type : kr->rtm_type & 0xf;
	uint64_t flags = (kr != NULL) | (kr != NULL && kr->connected) << 1 | hidden << 2 |
			 route_is_hidden(rib, r) << 3;

	return (uint64_t)r->table << 32 | (uint64_t)shown->slot << 12 | type << 4 | flags;
}

/* Return the array of prefixes of the row for the route. Make the row if there is none. */
static json_t *
pack_prefixes(const struct rib *rib, struct pack *p, const struct route *r,
	      const struct shown_route *shown, bool hidden)
{
	uint64_t key = pack_key(rib, r, shown, hidden);
	uint32_t at = (uint32_t)mix64(key) % PLACES, row;
	json_t *object, *prefixes;

	for (; (row = p->place[at]) != 0; at = (at + 1) % PLACES)
		if (p->key[row - 1] == key)
			return p->prefixes[row - 1];
	object = route_json(rib, r, shown);
	prefixes = json_array();
	if (object == NULL || prefixes == NULL)
		abort(); /* out of memory for some hundred octets */
	/* The values of these keys may differ among the prefixes. */
	json_object_del(object, "prefix");
	json_object_del(object, "protocol");
	json_object_del(object, "metric");
	json_object_del(object, "stale");
	json_object_set_new(object, "hidden", json_boolean(hidden));
	json_object_set_new(object, "prefixes", prefixes);
	json_array_append_new(p->q->rows, object);
	p->key[p->n] = key;
	p->prefixes[p->n] = prefixes;
	p->place[at] = (uint16_t)++p->n;
	return prefixes;
}

static void
pack_add(const struct rib *rib, struct pack *p, const struct route *r, enum query_of of,
	 bool hidden)
{
	struct shown_route shown = route_shown(rib, r, of);
	struct prefix prefix = route_prefix(r);
	char text[PREFIX_STRLEN];

	if (shown.slot == 0)
		return;
	json_array_append_new(pack_prefixes(rib, p, r, &shown, hidden),
			      json_string_nocheck(prefix_str(&prefix, text)));
}

void
packed_slice(struct rib *rib, struct msg_query *q)
{
	struct pack p = {.q = q};
	uint32_t max = q->max < ROWS_MAX ? q->max : ROWS_MAX;

	for (uint32_t routes = 0; routes < SLICE_ROUTES; routes++) {
		const struct route *r;

		if (p.n + 2 > max)
			return;
		if (++q->cursor[0] > tables_walk_end(&rib->tables)) {
			q->done = true;
			return;
		}
		r = tables_walk_at(&rib->tables, (uint32_t)q->cursor[0]);
		if (r == NULL || !family_is_ip((uint8_t)r->family) ||
		    (q->family != 0 && q->family != r->family))
			continue;
		pack_add(rib, &p, r, OF_FIB, false);
		if (r->kslot != 0 && r->zslot != 0)
			pack_add(rib, &p, r, OF_ZEBRA, true);
	}
}
