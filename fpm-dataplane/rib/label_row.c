/* SPDX-License-Identifier: BSD-3-Clause */
/* List the label table, and the label stacks of next hops, for the ui. [rib] */
#include "rib/label_row.h"

#include <jansson.h>

#include "base/inet.h"
#include "base/srv6.h"
#include "fib/headend.h"
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

/* Room for the name of an end point or headend, its segments, and its source. */
#define SRV6_TEXT_BYTES (64 + (SRV6_SEGMENTS_MAX + 1) * PREFIX_STRLEN)

static size_t
address_text(const uint32_t word[4], const char *before, char *text, size_t size)
{
	char addr[PREFIX_STRLEN];
	struct ipaddr a;

	for (unsigned int i = 0; i < 4; i++)
		put_be32(a.octet + 4 * i, word[i]);
	return (size_t)snprintf(text, size, "%s%s", before, ipaddr_str(&a, 6, addr));
}

/*
 * Write the segments of a headend in the order of visits, and its own source address, if
 * any.
 */
static bool
headend_text(const uint32_t *word, unsigned int n_words, char *text, size_t size)
{
	const uint32_t *source;
	enum srv6_mode mode;
	unsigned int n = srv6_headend_unpack(word, n_words, &mode, &source);
	size_t at;

	if (n == 0)
		return false;
	at = (size_t)snprintf(text, size, "%s",
			      mode == SRV6_ENCAP ? "H.Encaps" : "H.Encaps.Red");
	while (n-- > 0)
		at += address_text(word + 1 + 4 * n, " ", text + at, size - at);
	if (source != NULL)
		address_text(source, " source ", text + at, size - at);
	return true;
}

/* Write the action of an end point as FRR names it: End.DT4 table 100. */
static void
sid_text(const struct srv6_sid *sid, char *text, size_t size)
{
	static const char *const name[] = {
		[SRV6_END] = "End",
		[SRV6_END_X] = "End.X",
		[SRV6_END_T] = "End.T",
		[SRV6_END_DX6] = "End.DX6",
		[SRV6_END_DX4] = "End.DX4",
		[SRV6_END_DT6] = "End.DT6",
		[SRV6_END_DT4] = "End.DT4",
		[SRV6_END_DT46] = "End.DT46",
		[SRV6_END_B6_ENCAPS] = "End.B6.Encaps",
	};
	const char *action =
		sid->action < sizeof(name) / sizeof(name[0]) ? name[sid->action] : NULL;
	char addr[PREFIX_STRLEN];
	size_t at;

	at = (size_t)snprintf(text, size, "%s", action == NULL ? "End.?" : action);
	if (sid->family != 0)
		snprintf(text + at, size - at, " %s",
			 ipaddr_str(&sid->hop, sid->family, addr));
	else if (sid->table != 0)
		snprintf(text + at, size - at, " table %u", sid->table);
	else if (sid->n_policy != 0) {
		text[at++] = ' ';
		headend_text(sid->policy, sid->n_policy, text + at, size - at);
	}
}

static json_t *
hop_srv6_json(const struct rib *rib, const struct next_hop *hop)
{
	const struct stack *s = hop->stack == 0 ? NULL : stack_at(rib, hop->stack);
	char text[SRV6_TEXT_BYTES];
	struct srv6_sid sid;

	if (s == NULL)
		snprintf(text, sizeof(text), "%s: %s",
			 leg_is_for_kernel(rib, hop) ? "by the kernel" : "unsupported",
			 srv6_refusal_text(hop->refusal));
	else if (srv6_sid_unpack(s->label, s->n, &sid))
		sid_text(&sid, text, sizeof(text));
	else if (!headend_text(s->label, s->n, text, sizeof(text)))
		return json_null();
	return json_string(text);
}

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

static void
row_add_label_ttl(json_t *row, uint16_t ttl)
{
	if (ttl != 0)
		json_object_set_new(row, "label_ttl", json_integer(ttl - LABEL_TTL_OWN));
}

static void
hop_add_labels(json_t *row, const struct rib *rib, const struct next_hop *hop)
{
	json_object_set_new(row, "labels", hop_labels_json(rib, hop));
	if (hop->stack != 0)
		row_add_label_ttl(row, stack_at(rib, hop->stack)->ttl);
}

void
hop_add_encap(json_t *row, const struct rib *rib, const struct next_hop *hop)
{
	if (hop->kind != PATH_NONE)
		return;
	if (hop->encap == HOP_MPLS || hop->encap == HOP_POP)
		hop_add_labels(row, rib, hop);
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

	headend_text(s->label, s->n, text, sizeof(text));
	return json_pack("{s:I, s:[], s:s, s:n, s:n, s:i, s:b, s:I}", "encap",
			 (json_int_t)number, "labels", "srv6", text, "via", "dev", "adj", 0,
			 "alive", true, "nexthops", (json_int_t)rib->encaps.v[number].refs);
}

static json_t *
encap_json(const struct rib *rib, uint32_t number)
{
	const struct fib_encap *e = &rib->fib->encap[number];
	const struct adj *a = &rib->adjs.v[path_index(e->next)];
	const struct link *link = rib_link_find(&rib->links, a->ifindex);
	json_t *labels = json_array(), *row;
	char via[PREFIX_STRLEN];

	for (unsigned int i = 0; i < e->n; i++)
		json_array_append_new(
			labels, json_integer(label_of(__builtin_bswap32(e->entry[i]))));
	row = json_pack("{s:I, s:o, s:s, s:s, s:I, s:b, s:I}", "encap", (json_int_t)number,
			"labels", labels, "via", ipaddr_str(&a->addr, a->family, via),
			"dev", link == NULL ? "" : link->name, "adj",
			(json_int_t)path_index(e->next), "alive", a->alive, "nexthops",
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
