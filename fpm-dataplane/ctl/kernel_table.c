/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Run `ip -N -o route show table all` and parse its lines, such as
 *
 *     10.6.0.0/16 nhid 7 proto 3 \ nexthop via 10.1.0.9 dev d0 weight 3 \ nexthop ...
 *     2 10.1.0.1 dev d0 table 255 proto 2 scope 254 src 10.1.0.1
 *
 * that is: the type as a number (RTN_*) unless it is unicast, the prefix, then names and
 * values.
 */
#include "ctl/kernel_table.h"

#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/run.h"

#define TABLE_S 120 /* as for zebra: a full table takes its time */
#define BLANKS  " \t\\\n"

/* The next hop that a line is in the middle of. */
struct hop {
	const char *via, *dev;
	long long weight;
	bool down;
};

struct line {
	struct kernel_route r;
	const char *state; /* of a type other than unicast */
	struct hop hop;
	bool in_encap; /* its words are not those of the route, until via or dev */
	bool all_down;
	bool is_over; /* its life is over: the kernel does not use it */
};

static void
hop_end(struct line *l)
{
	if (l->hop.dev == NULL || l->state != NULL)
		return;
	hops_add(&l->r.hops, l->hop.via, l->hop.dev, l->hop.weight);
	l->all_down &= l->hop.down;
	l->hop = (struct hop){0};
}

/*
 * Return what the dataplane calls a route of this type, a number as `ip -N` prints it.
 * "": the type is in no FIB. NULL: the word is no type.
 */
static const char *
type_state(const char *word)
{
	static const char *const state[] = {
		[RTN_LOCAL] = "local",       [RTN_BROADCAST] = "broadcast",
		[RTN_ANYCAST] = "local",     [RTN_BLACKHOLE] = "blackhole",
		[RTN_PROHIBIT] = "prohibit", [RTN_UNREACHABLE] = "unreachable",
		[RTN_THROW] = "unresolved",  [RTN_MULTICAST] = "",
	};
	unsigned long type;
	char *end;

	type = strtoul(word, &end, 10);
	if (*end != '\0')
		return NULL;
	return type < sizeof(state) / sizeof(state[0]) && state[type] != NULL ? state[type]
									      : "";
}

static bool
prefix_take(struct line *l, uint8_t family, const char *word)
{
	bool addr;

	if (strcmp(word, "default") == 0)
		l->r.prefix = (struct prefix){.family = family};
	else if (prefix_parse(word, &l->r.prefix, &addr) < 0)
		return false;
	return l->r.prefix.family == family;
}

/* Take a word, and with it its value if it has one. */
static void
word_take(struct line *l, const char *word, char **save)
{
	const char *value;

	if (strcmp(word, "nexthop") == 0) {
		hop_end(l);
		return;
	}
	l->in_encap &= strcmp(word, "via") != 0 && strcmp(word, "dev") != 0;
	l->in_encap |= strcmp(word, "encap") == 0;
	if (l->in_encap)
		return;
	if (strcmp(word, "linkdown") == 0 || strcmp(word, "dead") == 0) {
		l->hop.down = true;
		return;
	}
	if (strcmp(word, "onlink") == 0 || strcmp(word, "pervasive") == 0 ||
	    strcmp(word, "offload") == 0 || strcmp(word, "trap") == 0)
		return;
	value = strtok_r(NULL, BLANKS, save);
	if (value == NULL)
		return;
	if (strcmp(word, "via") == 0) {
		if (strcmp(value, "inet") == 0 || strcmp(value, "inet6") == 0)
			value = strtok_r(NULL, BLANKS, save);
		l->hop.via = value;
	} else if (strcmp(word, "dev") == 0) {
		l->hop.dev = value;
	} else if (strcmp(word, "weight") == 0) {
		l->hop.weight = atoll(value);
	} else if (strcmp(word, "table") == 0) {
		l->r.table = (uint32_t)strtoul(value, NULL, 10);
	} else if (strcmp(word, "metric") == 0) {
		l->r.metric = (uint32_t)strtoul(value, NULL, 10);
	} else if (strcmp(word, "proto") == 0) {
		l->r.protocol = (uint8_t)strtoul(value, NULL, 10);
	} else if (strcmp(word, "from") == 0) {
		l->r.by_source = true;
	} else if (strcmp(word, "tos") == 0 || strcmp(word, "dsfield") == 0) {
		l->r.by_tos = true;
	} else if (strcmp(word, "pref") == 0) {
		l->r.preference = strcmp(value, "high") == 0 ? 0 : *value == 'l' ? 2 : 1;
	} else if (strcmp(word, "expires") == 0) {
		l->is_over = atoll(value) <= 0; /* "-1sec", until the kernel frees it */
	}
}

/* Parse a line, which is cut. Returns false if it is not about a route of a FIB. */
static bool
line_take(struct line *l, uint8_t family, char *text)
{
	char *save = NULL, *word = strtok_r(text, BLANKS, &save);

	*l = (struct line){
		.r = {.table = RT_TABLE_MAIN, .protocol = RTPROT_BOOT, .hops = l->r.hops},
		.all_down = true};
	hops_reset(&l->r.hops);
	if (word == NULL)
		return false;
	l->state = type_state(word);
	if (l->state != NULL)
		word = strtok_r(NULL, BLANKS, &save);
	if (word == NULL || !prefix_take(l, family, word) ||
	    prefix_is_in_no_fib(&l->r.prefix))
		return false;
	while ((word = strtok_r(NULL, BLANKS, &save)) != NULL)
		word_take(l, word, &save);
	hop_end(l);
	if (l->is_over || (l->state != NULL && l->state[0] == '\0'))
		return false;
	if (l->state != NULL)
		hops_add_kind(&l->r.hops, l->state);
	l->r.is_local = l->r.table == RT_TABLE_LOCAL;
	if (l->r.is_local)
		l->r.table = RT_TABLE_MAIN;
	l->r.is_down = l->state == NULL && l->all_down && l->r.protocol == RTPROT_KERNEL;
	return l->r.hops.n > 0;
}

int
kernel_table(uint8_t family, const struct prefix *p, kernel_on_route *on_route, void *ctx)
{
	struct run run = {.patience_s = TABLE_S};
	char command[PREFIX_STRLEN + 64], text[PREFIX_STRLEN];
	struct line l = {0};
	char *line = NULL;
	size_t size = 0;
	int rc;

	snprintf(command, sizeof(command), "ip -N -o -%u route show table all%s%s",
		 family == 4 ? 4 : 6, p == NULL ? "" : " exact ",
		 p == NULL ? "" : prefix_str(p, text));
	if (run_start(&run, command, NULL) < 0)
		return -1;
	while (getline(&line, &size, run.out) > 0)
		if (line_take(&l, family, line))
			on_route(&l.r, ctx);
	hops_free(&l.r.hops);
	free(line);
	rc = run_end(&run);
	if (rc < 0)
		fprintf(stderr, "fpmctl: '%s' gives no routes of the kernel\n", command);
	return rc;
}
