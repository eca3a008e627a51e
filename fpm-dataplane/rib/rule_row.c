/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of `show rules`: the rules of the kernel; dist/openapi.yaml has the keys. [rib] */
#include "rib/rule_row.h"

#include <jansson.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>

#include "base/rule_action.h"
#include "rib/link.h"
#include "rib/rib_impl.h"
#include "rib/rules.h"

static json_t *
selector_json(const struct prefix *p)
{
	char buf[PREFIX_STRLEN];

	return p->len == 0 ? json_string("all") : json_string(prefix_str(p, buf));
}

static json_t *
ports_json(const struct rule_ports *ports)
{
	if (ports->last == 0)
		return json_null();
	if (ports->first == ports->last)
		return json_sprintf("%u", ports->first);
	return json_sprintf("%u-%u", ports->first, ports->last);
}

static json_t *
octet_json(unsigned int octet)
{
	return octet == 0 ? json_null() : json_sprintf("0x%02x", octet);
}

void
row_add_condition(json_t *row, const struct prefix *src)
{
	if (src->family == 4)
		json_object_set_new(row, "tos", octet_json(src->addr.octet[0]));
	else
		json_object_set_new(row, "from", selector_json(src));
}

static json_t *
iif_json(const struct rule *rule)
{
	json_t *name = rule->iif[0] == '\0' ? NULL : json_string(rule->iif);

	return name == NULL ? json_null() : name; /* absent, or not UTF-8 */
}

/* Add the interface of a rule that is found by an alternative name, and if there is none. */
static void
row_add_interface(const struct rib *rib, const struct rule *rule, json_t *row)
{
	const struct link *link = rule_iif(rib, rule);
	json_t *name =
		link == NULL || rule->iif_index == 0 ? NULL : json_string(link->name);

	json_object_set_new(row, "iif_interface", name == NULL ? json_null() : name);
	json_object_set_new(row, "iif_detached",
			    json_boolean(rule->iif[0] != '\0' && link == NULL &&
					 (rule->lacks & RULE_LACKS_IIF) == 0));
}

static json_t *
rule_json(const struct rib *rib, const struct rule *rule)
{
	bool lookup = rule->action == FR_ACT_TO_TBL && !rule->l3mdev;
	const char *lacks = rule_lacks(rule);
	json_t *row;

	if (lacks == NULL && rule_lacks_fib(rib, rule))
		lacks = "lookup";

	row = json_pack(
		"{s:s, s:I, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:o, "
		"s:o, s:b, s:o}",
		"family", rule->family == 4 ? "ipv4" : "ipv6", "pref",
		(json_int_t)rule->pref, "not", rule->invert, "from",
		selector_json(&rule->src), "to", selector_json(&rule->dst), "iif",
		iif_json(rule), "tos", octet_json(rule->tos_mask == 0 ? 0 : rule->tos),
		"ip_protocol",
		rule->ip_proto == 0 ? json_null() : json_integer(rule->ip_proto), "sport",
		ports_json(&rule->sport), "dport", ports_json(&rule->dport), "action",
		rule_action_word(rule->action, rule->l3mdev), "table",
		lookup ? json_integer(rule->table) : json_null(), "target",
		rule->action == FR_ACT_GOTO ? json_integer(rule->target) : json_null(),
		"suppress_prefixlength",
		rule->suppress < 0 ? json_null() : json_integer(rule->suppress),
		"suppress_ifgroup",
		rule->suppress_group == RULE_NO_GROUP ? json_null()
						      : json_integer(rule->suppress_group),
		"obeyed", lacks == NULL, "lacks",
		lacks == NULL ? json_null() : json_string(lacks));
	row_add_interface(rib, rule, row);
	return row;
}

void
rule_rows(const struct rib *rib, struct msg_query *q)
{
	/* cursor[0]: 0 IPv4, 1 IPv6; cursor[1]: rules of it that were shown */
	for (; q->cursor[0] < 2; q->cursor[0]++, q->cursor[1] = 0) {
		const struct rule_list *list = &rib->rules.list[q->cursor[0]];

		for (; q->cursor[1] < list->n; q->cursor[1]++) {
			if (json_array_size(q->rows) >= q->max)
				return;
			json_array_append_new(q->rows,
					      rule_json(rib, &list->v[q->cursor[1]]));
		}
	}
	q->done = true;
}
