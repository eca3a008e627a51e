/* SPDX-License-Identifier: BSD-3-Clause */
/* Write rows of `show rules` in the spelling of `ip rule`. */
#include "ctl/rule_words.h"

#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>

#include "ctl/json_row.h"

struct writer {
	const json_t *row;
	void (*word)(void *ctx, const char *text);
	void *ctx;
};

/* A member of a row that is a number or a text, and the word before it. */
struct part {
	const char *key, *name;
};

static const struct part selectors[] = {
	{"fwmark", "fwmark"}, {"uid_range", "uidrange"}, {"ip_protocol", "ipproto"},
	{"sport", "sport"},   {"dport", "dport"},        {"flowlabel", "flowlabel"},
	{"tun_id", "tun_id"},
};

static const struct part ends[] = {
	{"suppress_prefixlength", "suppress_prefixlength"},
	{"suppress_ifgroup", "suppress_ifgroup"},
	{"realms", "realms"},
};

/* Write "NAME VALUE" if the row has the key. */
static void
part_write(const struct writer *w, const struct part *p)
{
	const json_t *value = json_object_get(w->row, p->key);
	char text[128];

	if (json_is_integer(value))
		snprintf(text, sizeof(text), "%s %lld", p->name,
			 (long long)json_integer_value(value));
	else if (json_is_string(value))
		snprintf(text, sizeof(text), "%s %s", p->name, json_string_value(value));
	else
		return;
	w->word(w->ctx, text);
}

static void
parts_write(const struct writer *w, const struct part *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		part_write(w, &p[i]);
}

/*
 * Write "iif lan0". If lan0 is an alternative name, add the primary name: "iif lan0
 * (wan0)". If no interface has the name, add "[detached]".
 */
static void
iif_write(const struct writer *w)
{
	const char *interface = row_str(w->row, "iif_interface");
	char text[128];

	if (!row_has(w->row, "iif"))
		return;
	snprintf(text, sizeof(text), "iif %s%s%s%s%s", row_str(w->row, "iif"),
		 interface[0] != '\0' ? " (" : "", interface,
		 interface[0] != '\0' ? ")" : "",
		 row_true(w->row, "iif_detached") ? " [detached]" : "");
	w->word(w->ctx, text);
}

static void
oif_write(const struct writer *w)
{
	char text[64];

	if (!row_has(w->row, "oif"))
		return;
	snprintf(text, sizeof(text), "oif %s%s", row_str(w->row, "oif"),
		 row_true(w->row, "oif_detached") ? " [detached]" : "");
	w->word(w->ctx, text);
}

static void
action_write(const struct writer *w)
{
	static const char *const name[] = {[RT_TABLE_DEFAULT] = "default",
					   [RT_TABLE_MAIN] = "main",
					   [RT_TABLE_LOCAL] = "local"};
	const char *action = row_str(w->row, "action");
	long long table = row_int(w->row, "table");
	char text[128];

	if (row_has(w->row, "table") && table >= RT_TABLE_DEFAULT &&
	    table <= RT_TABLE_LOCAL)
		snprintf(text, sizeof(text), "%s %s", action, name[table]);
	else if (row_has(w->row, "table"))
		snprintf(text, sizeof(text), "%s %lld", action, table);
	else if (row_has(w->row, "target"))
		snprintf(text, sizeof(text), "%s %lld%s", action, row_int(w->row, "target"),
			 row_true(w->row, "unresolved") ? " [unresolved]" : "");
	else
		snprintf(text, sizeof(text), "%s", action);
	w->word(w->ctx, text);
}

void
rule_words(const json_t *row, void (*word)(void *ctx, const char *text), void *ctx)
{
	const struct writer w = {.row = row, .word = word, .ctx = ctx};
	const char *protocol = row_str(row, "protocol");

	if (row_true(row, "not"))
		word(ctx, "not");
	part_write(&w, &(struct part){"from", "from"});
	if (strcmp(row_str(row, "to"), "all") != 0)
		part_write(&w, &(struct part){"to", "to"});
	iif_write(&w);
	/*
	 * The daemon's row of a rule with a DSCP has the octet of the DSCP as "tos", too.
	 */
	part_write(&w, row_has(row, "dscp") ? &(struct part){"dscp", "dscp"}
					    : &(struct part){"tos", "tos"});
	oif_write(&w);
	parts_write(&w, selectors, sizeof(selectors) / sizeof(selectors[0]));
	action_write(&w);
	parts_write(&w, ends, sizeof(ends) / sizeof(ends[0]));
	if (protocol[0] != '\0' && strcmp(protocol, "unspec") != 0 &&
	    strcmp(protocol, "kernel") != 0)
		part_write(&w, &(struct part){"protocol", "proto"});
}
