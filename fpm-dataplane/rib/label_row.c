/* SPDX-License-Identifier: BSD-3-Clause */
/* List the label table, and the label stacks of next hops, for the ui. [rib] */
#include "rib/label_row.h"

#include <jansson.h>

#include "base/inet.h"
#include "base/srv6.h"
#include "fib/label.h"
#include "rib/rib_impl.h"
#include "rib/route_row.h"
#include "rib/routes.h"

#define SCAN_MAX 65536u /* labels without a route in one slice */

json_t *
hop_labels_json(const struct rib *rib, const struct next_hop *hop)
{
	const struct stack *s = hop->stack == 0 ? NULL : stack_at(rib, hop->stack);
	json_t *array = json_array();

	for (unsigned int i = 0; s != NULL && i < s->n; i++)
		json_array_append_new(array, json_integer(s->label[i]));
	return array;
}

/* Write the action of an end point as FRR names it: End.DT4 table 100. */
static void
sid_text(const struct srv6_sid *sid, char *text, size_t size)
{
	static const char *const name[] = {
		[SRV6_END] = "End",         [SRV6_END_X] = "End.X",
		[SRV6_END_T] = "End.T",     [SRV6_END_DX6] = "End.DX6",
		[SRV6_END_DX4] = "End.DX4", [SRV6_END_DT6] = "End.DT6",
		[SRV6_END_DT4] = "End.DT4", [SRV6_END_DT46] = "End.DT46",
	};
	const char *action =
		sid->action < sizeof(name) / sizeof(name[0]) ? name[sid->action] : NULL;
	char addr[PREFIX_STRLEN];

	if (action == NULL)
		action = "End.?";
	if (sid->family != 0)
		snprintf(text, size, "%s %s", action,
			 ipaddr_str(&sid->hop, sid->family, addr));
	else if (sid->table != 0)
		snprintf(text, size, "%s table %u", action, sid->table);
	else
		snprintf(text, size, "%s", action);
}

/* Write the segments of a headend, the first to visit first. */
static void
headend_text(const uint32_t *word, unsigned int n, enum srv6_mode mode, char *text,
	     size_t size)
{
	char addr[PREFIX_STRLEN];
	struct ipaddr segment;
	size_t at;

	at = (size_t)snprintf(text, size, "%s",
			      mode == SRV6_ENCAP ? "H.Encaps" : "H.Encaps.Red");
	while (n-- > 0 && at < size) {
		for (unsigned int i = 0; i < 4; i++)
			put_be32(segment.octet + 4 * i, word[1 + 4 * n + i]);
		at += (size_t)snprintf(text + at, size - at, " %s",
				       ipaddr_str(&segment, 6, addr));
	}
}

static json_t *
hop_srv6_json(const struct rib *rib, const struct next_hop *hop)
{
	const struct stack *s = hop->stack == 0 ? NULL : stack_at(rib, hop->stack);
	char text[32 + SRV6_SEGMENTS_MAX * PREFIX_STRLEN];
	struct srv6_sid sid;
	enum srv6_mode mode;
	unsigned int n;

	if (s == NULL)
		snprintf(text, sizeof(text), "unsupported: %s",
			 srv6_refusal_text(hop->refusal));
	else if (srv6_sid_unpack(s->label, s->n, &sid))
		sid_text(&sid, text, sizeof(text));
	else if ((n = srv6_headend_unpack(s->label, s->n, &mode)) != 0)
		headend_text(s->label, n, mode, text, sizeof(text));
	else
		return json_null();
	return json_string(text);
}

void
hop_add_encap(json_t *row, const struct rib *rib, const struct next_hop *hop)
{
	if (hop->kind != PATH_NONE)
		return;
	if (hop->encap == HOP_MPLS || hop->encap == HOP_POP)
		json_object_set_new(row, "labels", hop_labels_json(rib, hop));
	else if (hop->encap == HOP_SEG6)
		json_object_set_new(row, "srv6", hop_srv6_json(rib, hop));
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
	json_t *row = route_json(rib, r, &shown);

	json_object_set_new(row, "label", json_integer(label));
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

static json_t *
encap_json(const struct rib *rib, uint32_t number)
{
	const struct fib_encap *e = &rib->fib->encap[number];
	const struct adj *a = &rib->adjs.v[path_index(e->next)];
	const struct link *link = rib_link_find(&rib->links, a->ifindex);
	json_t *labels = json_array();
	char via[PREFIX_STRLEN];

	for (unsigned int i = 0; i < e->n; i++)
		json_array_append_new(
			labels, json_integer(label_of(__builtin_bswap32(e->entry[i]))));
	return json_pack("{s:I, s:o, s:s, s:s, s:I, s:b, s:I}", "encap", (json_int_t)number,
			 "labels", labels, "via", ipaddr_str(&a->addr, a->family, via),
			 "dev", link == NULL ? "" : link->name, "adj",
			 (json_int_t)path_index(e->next), "alive", a->alive, "nexthops",
			 (json_int_t)rib->encaps.v[number].refs);
}

void
encaps_slice(struct rib *rib, struct msg_query *q)
{
	while (json_array_size(q->rows) < q->max) {
		if (++q->cursor[0] > rib->encaps.high) {
			q->done = true;
			return;
		}
		if (rib->encaps.v[q->cursor[0]].refs > 0)
			json_array_append_new(q->rows,
					      encap_json(rib, (uint32_t)q->cursor[0]));
	}
}
