/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Read the rules of both sides as texts in the spelling of `ip rule`, "100: from all iif
 * lan0 lookup 100", each side in its order. There are few rules, so each round reads all.
 */
#include "ctl/audit_rules.h"

#include <inttypes.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/rtproto.h"
#include "base/rule_action.h"
#include "ctl/cmd.h"
#include "ctl/conn.h"
#include "ctl/json_row.h"
#include "ctl/kernel_rules.h"
#include "ctl/rule_words.h"

#define ROUNDS   3
#define PAUSE_MS 300

/* The rules of one side: for each family an array of texts. */
struct side {
	json_t *texts[2];
	/*
	 * The kernel does not support rules of the family, for example with ipv6.disable=1.
	 */
	bool is_absent[2];
};

static const char *const family_name[2] = {"ipv4", "ipv6"};

/* --- texts ---------------------------------------------------------------------------- */

static void
row_on_word(void *ctx, const char *text)
{
	fprintf(ctx, " %s", text);
}

/* Return the text of a row of `show rules`. */
static json_t *
row_text(const json_t *row)
{
	const char *lacks = row_str(row, "lacks");
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	json_t *json;

	if (out == NULL)
		abort(); /* out of memory for some hundred octets */
	fprintf(out, "%lld:", row_int(row, "pref"));
	rule_words(row, row_on_word, out);
	/*
	 * Leave out the lack of a FIB (lookup) and of an interface (iif). Only the daemon
	 * can lack them, so the text of the kernel's rule has no such part.
	 */
	if (lacks[0] != '\0' && strcmp(lacks, "lookup") != 0 && strcmp(lacks, "iif") != 0)
		fprintf(out, " with %s", lacks);
	if (fclose(out) != 0)
		abort();
	json = json_string(text);
	free(text);
	return json == NULL ? json_string("?") : json;
}

/* --- the kernel ----------------------------------------------------------------------- */

static json_t *
prefix_json(const struct prefix *p)
{
	char text[PREFIX_STRLEN];

	return p->len == 0 ? json_string("all") : json_string(prefix_str(p, text));
}

static json_t *
ports_json(const uint16_t port[2], uint16_t mask)
{
	if (port[1] == 0)
		return json_null();
	if (port[0] != port[1])
		return json_sprintf("%u-%u", port[0], port[1]);
	return mask == 0 || mask == UINT16_MAX ? json_sprintf("%u", port[0])
					       : json_sprintf("%u/0x%x", port[0], mask);
}

static json_t *
name_json(const char *name)
{
	json_t *text = name[0] == '\0' ? NULL : json_string(name);

	return text == NULL ? json_null() : text;
}

/* Format a value v[0] and its mask v[1]. Leave out the mask if it is `all`. */
static json_t *
bits_json(const uint32_t v[2], uint32_t all)
{
	return v[1] == all ? json_sprintf("0x%x", v[0])
			   : json_sprintf("0x%x/0x%x", v[0], v[1]);
}

static json_t *
number_json(bool given, uint32_t number)
{
	return given ? json_integer(number) : json_null();
}

/* Return the part of a rule that `show rules` names in `lacks`; NULL: none. */
static const char *
lacks_word(const struct kernel_rule *r)
{
	bool no_suppress = r->l3mdev || r->table == RT_TABLE_LOCAL;

	if (r->mark)
		return "fwmark";
	if (r->uid)
		return "uidrange";
	if (r->tunnel)
		return "tun_id";
	if (no_suppress && r->suppress_group != KERNEL_RULE_NONE)
		return "suppress_ifgroup";
	if (no_suppress && r->suppress_length <= INT32_MAX)
		return "suppress_prefixlength";
	return r->unknown || strcmp(rule_action_word(r->action, r->l3mdev), "unknown") == 0
		       ? "unknown"
		       : NULL;
}

static json_t *
realms_json(uint32_t realms)
{
	unsigned int from = realms >> 16, to = realms & 0xffff;

	return realms == 0 ? json_null()
	       : from == 0 ? json_sprintf("%u", to)
			   : json_sprintf("%u/%u", from, to);
}

static json_t *
protocol_json(uint8_t protocol)
{
	const char *name = rtproto_name(protocol);

	return name == NULL ? json_sprintf("%u", protocol) : json_string(name);
}

/* Add the selectors of a rule to its row. */
static void
row_add_selectors(json_t *row, const struct kernel_rule *r)
{
	const uint32_t dscp_all = 0x3f;
	struct {
		const char *key;
		json_t *value;
	} v[] = {
		{"from", prefix_json(&r->src)},
		{"to", prefix_json(&r->dst)},
		{"iif", name_json(r->iif)},
		{"oif", name_json(r->oif)},
		{"tos", r->tos == 0 ? json_null() : json_sprintf("0x%02x", r->tos)},
		{"dscp", !r->has_dscp ? json_null()
			 : r->dscp[1] == dscp_all
				 ? json_sprintf("%u", r->dscp[0])
				 : json_sprintf("%u/0x%x", r->dscp[0], r->dscp[1])},
		{"fwmark", r->fwmark[0] == 0 && r->fwmark[1] == 0
				   ? json_null()
				   : bits_json(r->fwmark, UINT32_MAX)},
		{"uid_range",
		 r->has_uid_range ? json_sprintf("%u-%u", r->uid_range[0], r->uid_range[1])
				  : json_null()},
		{"ip_protocol", number_json(r->ip_protocol != 0, r->ip_protocol)},
		{"sport", ports_json(r->sport, r->sport_mask)},
		{"dport", ports_json(r->dport, r->dport_mask)},
		{"flowlabel",
		 r->has_flowlabel ? bits_json(r->flowlabel, 0xfffff) : json_null()},
		{"tun_id", r->tunnel ? json_sprintf("%" PRIu64, r->tun_id) : json_null()},
		{"realms", realms_json(r->realms)},
		{"protocol", protocol_json(r->protocol)},
	};

	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++)
		json_object_set_new(row, v[i].key, v[i].value);
}

/* Return a rule of the kernel as a row of `show rules`. */
static json_t *
rule_row(const struct kernel_rule *r)
{
	bool lookup = r->action == FR_ACT_TO_TBL && !r->l3mdev;
	json_t *row = json_pack(
		"{s:I, s:b, s:b, s:b, s:s, s:o, s:o, s:o, s:o, s:s?}", "pref",
		(json_int_t)r->pref, "not", r->invert, "iif_detached", r->iif_detached,
		"unresolved", r->unresolved, "action",
		rule_action_word(r->action, r->l3mdev), "table",
		number_json(lookup, r->table), "target",
		number_json(r->action == FR_ACT_GOTO, r->target), "suppress_prefixlength",
		number_json(r->suppress_length <= INT32_MAX, r->suppress_length),
		"suppress_ifgroup",
		number_json(r->suppress_group != KERNEL_RULE_NONE, r->suppress_group),
		"lacks", lacks_word(r));

	json_object_set_new(row, "oif_detached", json_boolean(r->oif_detached));
	row_add_selectors(row, r);
	return row;
}

static void
kernel_on_rule(const struct kernel_rule *r, void *ctx)
{
	json_t *row = rule_row(r);

	rows_harmless(row);
	json_array_append_new(ctx, row_text(row));
	json_decref(row);
}

/* Read the rules of the kernel. Returns false if it does not answer. */
static bool
kernel_side(struct side *s)
{
	for (unsigned int i = 0; i < 2; i++) {
		int rc = kernel_rules(i == 0 ? 4 : 6, kernel_on_rule, s->texts[i]);

		if (rc < 0)
			return false;
		s->is_absent[i] = rc == KERNEL_RULES_ABSENT;
	}
	return true;
}

/* --- the daemon ----------------------------------------------------------------------- */

static bool
rib_on_row(const json_t *row, const char *text, void *ctx)
{
	const struct side *s = ctx;
	bool ip6 = strcmp(row_str(row, "family"), family_name[1]) == 0;
	json_t *compared = json_copy((json_t *)(uintptr_t)row);

	json_object_del(compared, "iif_interface"); /* no message of the kernel has it */
	json_array_append_new(s->texts[ip6], row_text(compared));
	json_decref(compared);
	return true;
}

/* Read the rules of the daemon. Returns false if it does not answer. */
static bool
rib_side(const char *socket, struct side *s)
{
	json_t *request = json_pack("{s:s}", "show", "rules");
	int rc = conn_ask(socket, request, rib_on_row, s);

	json_decref(request);
	return rc == CTL_OK;
}

/* --- comparison ----------------------------------------------------------------------- */

static void
side_begin(struct side *s)
{
	*s = (struct side){.texts = {json_array(), json_array()}};
}

static void
side_end(struct side *s)
{
	for (unsigned int i = 0; i < 2; i++)
		json_decref(s->texts[i]);
}

/*
 * Add a row for a difference. `kernel` and `rib`: the text of the rule of that side; NULL:
 * the side does not have the rule.
 */
static void
difference_add(json_t *differences, unsigned int family, const json_t *kernel,
	       const json_t *rib)
{
	char name[32];

	snprintf(name, sizeof(name), "%s rule", family_name[family]);
	json_array_append_new(differences,
			      json_pack("{s:s, s:n, s:n, s:n, s:s, s:O?, s:O?}", "what",
					"kernel", "vrf", "table", "from", "prefix", name,
					"kernel", (json_t *)(uintptr_t)kernel, "rib",
					(json_t *)(uintptr_t)rib));
}

/* Remove the first text of `texts` that equals `text`. Returns false if there is none. */
static bool
text_remove(json_t *texts, const json_t *text)
{
	for (size_t i = 0; i < json_array_size(texts); i++)
		if (json_equal(json_array_get(texts, i), text)) {
			json_array_remove(texts, i);
			return true;
		}
	return false;
}

/*
 * Compare the rules of a family. If both sides have the same rules in another order, the
 * first pair of rules that differs is reported.
 */
static void
family_compare(json_t *differences, unsigned int family, const json_t *kernel,
	       const json_t *rib)
{
	size_t before = json_array_size(differences), i;
	json_t *rest, *text;

	if (json_equal(kernel, rib))
		return;
	rest = json_copy((json_t *)(uintptr_t)rib);
	json_array_foreach (kernel, i, text)
		if (!text_remove(rest, text))
			difference_add(differences, family, text, NULL);
	json_array_foreach (rest, i, text)
		difference_add(differences, family, NULL, text);
	json_decref(rest);
	if (json_array_size(differences) > before)
		return;
	for (i = 0; json_equal(json_array_get(kernel, i), json_array_get(rib, i)); i++)
		;
	difference_add(differences, family, json_array_get(kernel, i),
		       json_array_get(rib, i));
}

/*
 * Return true if the daemon has exactly the standard rules of IPv6, and the kernel lists
 * only some of them because the others were deleted. Linux obeys deleted standard rules of
 * IPv6 until the first rule is added in the network namespace. So does the daemon
 * (rtnl/pass.c).
 */
static bool
deletions_are_ignored6(const json_t *kernel, const json_t *rib)
{
	static const struct {
		uint32_t pref, table;
	} rule[] = {{0, RT_TABLE_LOCAL}, {32766, RT_TABLE_MAIN}};
	json_t *standard = json_array(), *text;
	bool ignored;
	size_t i;

	for (i = 0; i < sizeof(rule) / sizeof(rule[0]); i++)
		kernel_on_rule(&(struct kernel_rule){.pref = rule[i].pref,
						     .table = rule[i].table,
						     .action = FR_ACT_TO_TBL,
						     .suppress_length = KERNEL_RULE_NONE,
						     .suppress_group = KERNEL_RULE_NONE,
						     .src.family = 6,
						     .dst.family = 6},
			       standard);
	ignored = json_equal(rib, standard);
	json_array_foreach (kernel, i, text)
		ignored &= text_remove(standard, text);
	json_decref(standard);
	return ignored;
}

/* Compare all rules once. Returns false if a side does not answer. */
static bool
rules_compare(const char *socket, struct rule_audit *out)
{
	struct side kernel, rib;
	bool answered;

	side_begin(&kernel);
	side_begin(&rib);
	answered = rib_side(socket, &rib) && kernel_side(&kernel);
	json_decref(out->differences);
	*out = (struct rule_audit){.differences = json_array()};
	for (unsigned int i = 0; answered && i < 2; i++) {
		bool same =
			kernel.is_absent[i] ||
			(i == 1 && deletions_are_ignored6(kernel.texts[1], rib.texts[1]));

		if (!same)
			family_compare(out->differences, i, kernel.texts[i], rib.texts[i]);
		out->n_kernel += json_array_size(kernel.texts[i]);
		out->n_rib += json_array_size(rib.texts[i]);
	}
	out->n_found = json_array_size(out->differences);
	side_end(&kernel);
	side_end(&rib);
	return answered;
}

int
audit_rules(const char *socket, struct rule_audit *out)
{
	static const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000};

	*out = (struct rule_audit){.differences = json_array()};
	for (int round = 0; round < ROUNDS; round++) {
		if (round > 0)
			nanosleep(&pause, NULL);
		if (!rules_compare(socket, out))
			return CTL_NO_DAEMON;
		if (out->n_found == 0)
			break;
	}
	return CTL_OK;
}

void
audit_rules_free(struct rule_audit *a)
{
	json_decref(a->differences);
}
