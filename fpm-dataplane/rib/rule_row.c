/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of `show rules`: the rules of the kernel; dist/openapi.yaml has the keys. [rib] */
#include "rib/rule_row.h"

#include <inttypes.h>
#include <jansson.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>

#include "base/rtproto.h"
#include "base/rule_action.h"
#include "rib/link.h"
#include "rib/impl.h"
#include "rib/rules.h"

static json_t *
selector_json(const struct prefix *p)
{
	char buf[PREFIX_STRLEN];

	return p->len == 0 ? json_string("all") : json_string(prefix_str(p, buf));
}

/* Return VALUE, or VALUE/MASK if the mask does not have all of the bits `all`. */
static json_t *
bits_json(uint32_t value, uint32_t mask, uint32_t all)
{
	if (mask == all)
		return json_sprintf("0x%x", value);
	return json_sprintf("0x%x/0x%x", value, mask);
}

static json_t *
ports_json(const struct rule_ports *ports)
{
	if (ports->last == 0)
		return json_null();
	if (ports->first != ports->last)
		return json_sprintf("%u-%u", ports->first, ports->last);
	if (ports->mask != 0 && ports->mask != UINT16_MAX)
		return json_sprintf("%u/0x%x", ports->first, ports->mask);
	return json_sprintf("%u", ports->first);
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
name_json(const char *text)
{
	json_t *name = text[0] == '\0' ? NULL : json_string(text);

	return name == NULL ? json_null() : name; /* absent, or not UTF-8 */
}

static json_t *
tos_json(const struct rule *rule)
{
	if (rule->by_dscp)
		return json_sprintf("0x%02x", rule->tos);
	return octet_json(rule->tos_mask == 0 ? 0 : rule->tos);
}

static json_t *
dscp_json(const struct rule *rule)
{
	unsigned int dscp = rule->tos >> 2, mask = rule->tos_mask >> 2;

	if (!rule->by_dscp)
		return json_null();
	return mask == 0x3f ? json_sprintf("%u", dscp)
			    : json_sprintf("%u/0x%x", dscp, mask);
}

static json_t *
realms_json(uint32_t realms)
{
	if (realms == 0)
		return json_null();
	if (realms >> 16 == 0)
		return json_sprintf("%u", realms);
	return json_sprintf("%u/%u", realms >> 16, realms & 0xffff);
}

static json_t *
label_json(const struct rule *rule)
{
	if (rule->label.mask == 0)
		return json_null();
	return bits_json(rule->label.value, rule->label.mask, 0xfffff);
}

/* Add the flow label, and the parts of a rule by which no forwarder selects packets. */
static void
row_add_unused(const struct rule *rule, json_t *row)
{
	bool mark = rule->mark.value != 0 || rule->mark.mask != 0;
	const char *protocol = rtproto_name(rule->protocol);

	json_object_set_new(row, "oif", name_json(rule->oif));
	json_object_set_new(row, "fwmark",
			    mark ? bits_json(rule->mark.value, rule->mark.mask, UINT32_MAX)
				 : json_null());
	json_object_set_new(row, "uid_range",
			    rule->has_uid
				    ? json_sprintf("%u-%u", rule->uid[0], rule->uid[1])
				    : json_null());
	json_object_set_new(row, "tun_id",
			    rule->tunnel == 0 ? json_null()
					      : json_sprintf("%" PRIu64, rule->tunnel));
	json_object_set_new(row, "flowlabel", label_json(rule));
	json_object_set_new(row, "realms", realms_json(rule->realms));
	json_object_set_new(row, "protocol",
			    protocol == NULL ? json_sprintf("%u", rule->protocol)
					     : json_string(protocol));
}

/*
 * Add the interface of `iif` if the rule has an alternative name of it, and whether the
 * interface of `iif` is missing.
 */
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

/* Return true for a goto to a number that no rule has. */
static bool
rule_is_unresolved(const struct rib *rib, const struct rule *rule)
{
	const struct rule_list *list = &rib->rules.list[rule->family == 6];

	if (rule->action != FR_ACT_GOTO)
		return false;
	for (uint32_t i = 0; i < list->n; i++)
		if (list->v[i].pref == rule->target)
			return false;
	return true;
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
		name_json(rule->iif), "tos", tos_json(rule), "ip_protocol",
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
	json_object_set_new(row, "dscp", dscp_json(rule));
	json_object_set_new(row, "unresolved", json_boolean(rule_is_unresolved(rib, rule)));
	row_add_interface(rib, rule, row);
	row_add_unused(rule, row);
	json_object_set_new(row, "oif_detached",
			    json_boolean(rule_oif_is_absent(rib, rule)));
	return row;
}

void
rule_rows(const struct rib *rib, struct msg_query *q)
{
	/* cursor[0]: 0 IPv4, 1 IPv6; cursor[1]: how many of its rules were shown */
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
