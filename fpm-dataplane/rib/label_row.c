/* SPDX-License-Identifier: BSD-3-Clause */
/* List the label table, and the label stacks of next hops, for the ui. [rib] */
#include "rib/label_row.h"

#include <jansson.h>

#include "base/inet.h"
#include "fib/headend.h"
#include "rib/encap_row.h"
#include "rib/impl.h"
#include "rib/route_row.h"
#include "rib/routes.h"

#define SCAN_MAX 65536u /* labels that a slice examines, with and without a route */

void
encaps_summary(const struct rib *rib, json_t *o)
{
	const struct fib_seg6 *seg6 =
		atomic_load_explicit(&rib->fib->seg6, memory_order_consume);
	char text[PREFIX_STRLEN];

	json_object_set_new(o, "encaps", json_integer(rib->encaps.n));
	json_object_set_new(o, "headends", json_integer(rib->encaps.n_headends));
	json_object_set_new(o, "sids", json_integer(rib->sids.n));
	json_object_set_new(o, "srv6_source",
			    seg6 == NULL ? json_null()
					 : json_string(ipaddr_str(&seg6->source, 6, text)));
}

static const struct route *
label_route(const struct rib *rib, uint32_t label)
{
	const struct routes *t = &rib->tables.other;
	struct prefix p = {.family = FAMILY_LABEL, .len = 32};

	put_be32(p.addr.octet, label);
	return routes_find(t, FPM_TABLE_NONE, &p, routes_hash(t, FPM_TABLE_NONE, &p));
}

/* Return a row of `show routes` for the route in force, with the keys that a label has. */
static json_t *
label_json(const struct rib *rib, uint32_t label, const struct route *r)
{
	const struct shown_route shown = route_shown(rib, r, OF_FIB);
	const struct slot *s = slot_at(&rib->slots, shown.slot);
	enum label_mode mode =
		label_mode_of_class(s->n_legs == 0 ? 0 : s->leg[0].hop.mtu_class);
	json_t *row = route_json(rib, r, &shown);

	json_object_set_new(row, "label", json_integer(label));
	if (mode != LABEL_MODE_DEFAULT)
		json_object_set_new(row, "ttl_propagate",
				    json_boolean(mode == LABEL_MODE_UNIFORM));
	json_object_del(row, "prefix");
	json_object_del(row, "table");
	json_object_del(row, "vrf");
	json_object_del(row, "type");
	json_object_del(row, "metric");
	json_object_del(row, "nexthop_id");
	json_object_del(row, "mtu");
	return row;
}

void
labels_slice(struct rib *rib, struct msg_query *q)
{
	const uint32_t *want = rib->labels.want;

	for (uint32_t n = 0; n < SCAN_MAX && json_array_size(q->rows) < q->max; n++) {
		const struct route *r;

		if (want == NULL || q->cursor[0] == LABELS_ALL) {
			q->done = true;
			return;
		}
		r = want[q->cursor[0]] == 0 ? NULL
					    : label_route(rib, (uint32_t)q->cursor[0]);
		if (r != NULL)
			json_array_append_new(q->rows,
					      label_json(rib, (uint32_t)q->cursor[0], r));
		q->cursor[0]++;
	}
}

/* Return the row of a headend: it has no neighbor of its own. */
static json_t *
headend_json(const struct rib *rib, uint32_t number)
{
	const struct stack *s = stack_at(rib, rib->encaps.v[number].stack);
	char text[SRV6_TEXT_BYTES] = "";

	headend_text(stack_labels(s), s->n, text, sizeof(text));
	return json_pack("{s:I, s:[], s:s, s:n, s:n, s:i, s:b, s:I}", "encap",
			 (json_int_t)number, "labels", "srv6", text, "via", "dev", "adj", 0,
			 "alive", true, "nexthops", (json_int_t)rib->encaps.v[number].refs);
}

/* Return the link of a tunnel; NULL: it is gone. */
static const struct link *
tunnel_link(const struct rib *rib, uint16_t ifidx)
{
	for (uint32_t i = 1; i <= rib->links.high; i++)
		if (rib->links.v[i] != NULL && rib->links.v[i]->ifidx == ifidx)
			return rib->links.v[i];
	return NULL;
}

/* Return the row of labels over an adjacency, or over a tunnel, which has no neighbor. */
static json_t *
encap_json(const struct rib *rib, uint32_t number)
{
	const struct fib_encap *e = &rib->fib->encap[number];
	fib_path next = encap_next(e);
	bool tunnel = path_kind(next) == PATH_ONLINK;
	uint32_t adj = tunnel ? 0 : path_index(next);
	const struct adj *a = tunnel ? NULL : &rib->adjs.v[adj];
	const struct link *link = tunnel ? tunnel_link(rib, (uint16_t)path_index(next))
					 : rib_link_find(&rib->links, a->ifindex);
	json_t *labels = json_array(), *row;
	char via[PREFIX_STRLEN] = "";

	if (!tunnel)
		ipaddr_str(&a->addr, a->family, via);
	for (unsigned int i = 0; i < e->n; i++)
		json_array_append_new(labels, json_integer(encap_label(e, i)));
	row = json_pack("{s:I, s:o, s:s?, s:s, s:I, s:b, s:I}", "encap", (json_int_t)number,
			"labels", labels, "via", tunnel ? NULL : via, "dev",
			link == NULL ? "" : link->name, "adj", (json_int_t)adj, "alive",
			tunnel ? link != NULL && link->up : a->alive, "nexthops",
			(json_int_t)rib->encaps.v[number].refs);
	row_add_label_ttl(row, e->ttl);
	return row;
}

void
encaps_slice(struct rib *rib, struct msg_query *q)
{
	while (json_array_size(q->rows) < q->max) {
		if (++q->cursor[0] > rib->encaps.high) {
			q->done = true;
			return;
		}
		if (rib->encaps.v[q->cursor[0]].refs == 0)
			continue;
		json_array_append_new(
			q->rows, path_is_headend(rib->fib, PATH(PATH_ENCAP, q->cursor[0]))
					 ? headend_json(rib, (uint32_t)q->cursor[0])
					 : encap_json(rib, (uint32_t)q->cursor[0]));
	}
}
