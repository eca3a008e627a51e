/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Words of `fpmctl show` that choose among the rows of an answer, as they come: those by a way
 * out, of a protocol, in a state; lines of a log by how bad they are. The daemon is not asked
 * for less, and nothing is kept.
 */
#include "ctl/choose.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/prefix.h"
#include "base/rtproto.h"

#define ROUTES    1u
#define GROUPS    2u
#define NEIGHBORS 4u
#define LOG       8u

enum kind { TEXT, ADDRESS, SOURCE, ONE_OF, LEVEL };

/* As dist/openapi.yaml has them (State, and of Neighbor); NULL is the last. */
static const char *const way_states[] = {
	"forwarding",  "local",         "onlink",  "broadcast",  "blackhole",
	"unreachable", "prohibit",      "foreign", "unresolved", "unsupported",
	"down",        "not-installed", NULL};
static const char *const neighbor_states[] = {"reachable", "stale",      "delay",  "probe",
					      "permanent", "incomplete", "failed", "noarp",
					      "none",      NULL};
static const char levels[] = "EWID"; /* of a line, behind its time */
static const char *const level_names[] = {"error", "warn", "info", "debug", NULL};

static const struct {
	const char *word, *value;
	const char *key; /* of the row; with `hops` of any next hop in it */
	unsigned int of; /* ROUTES, ... together */
	enum kind kind;
	bool hops;
	const char *const *values; /* all that may be said; NULL: anything */
} known[N_CHOOSE] = {
	{"via", "ADDRESS", "via", ROUTES | GROUPS, ADDRESS, true, NULL},
	{"dev", "NAME", "dev", ROUTES | GROUPS, TEXT, true, NULL},
	{"dev", "NAME", "dev", NEIGHBORS, TEXT, false, NULL},
	{"proto", "NAME", "protocol", ROUTES, SOURCE, false, NULL},
	{"state", "NAME", "state", ROUTES | GROUPS, ONE_OF, false, way_states},
	{"state", "NAME", "state", NEIGHBORS, ONE_OF, false, neighbor_states},
	{"level", "error|warn|info|debug", "line", LOG, LEVEL, false, level_names},
};

static const struct {
	const char *show;
	unsigned int of;
} shows[] = {
	{"routes", ROUTES},       {"nexthops", GROUPS}, {"groups", GROUPS},
	{"neighbors", NEIGHBORS}, {"log", LOG},
};

static unsigned int
of_show(const char *show)
{
	for (unsigned int i = 0; i < sizeof(shows) / sizeof(shows[0]); i++)
		if (strcmp(show, shows[i].show) == 0)
			return shows[i].of;
	return 0;
}

static int
find(const char *show, const char *word)
{
	for (int i = 0; i < N_CHOOSE; i++)
		if ((known[i].of & of_show(show)) != 0 && strcmp(word, known[i].word) == 0)
			return i;
	return -1;
}

static int
level_of(const char *name)
{
	for (int i = 0; i < (int)(sizeof(levels) - 1); i++)
		if (strcmp(name, level_names[i]) == 0)
			return i;
	return -1;
}

/* What may be said of `proto`: those that have a name each once, then tables of our own. */
static const char *
source_name(unsigned int n)
{
	static const char *const ours[] = {"connected", "local"};
	const char *name = n < 256 ? rtproto_name((uint8_t)n) : ours[n - 256];

	for (unsigned int i = 0; i < n && i < 256 && name != NULL; i++)
		if (rtproto_name((uint8_t)i) != NULL &&
		    strcmp(rtproto_name((uint8_t)i), name) == 0)
			return NULL;
	return name;
}
#define N_SOURCE 258

/* All that a word may be given, `gap` between two; nothing when that is anything. */
static void
values_print(FILE *out, int k, const char *gap)
{
	bool begun = false;

	for (unsigned int i = 0; known[k].kind == SOURCE && i < N_SOURCE; i++)
		if (source_name(i) != NULL) {
			fprintf(out, "%s%s", begun ? gap : "", source_name(i));
			begun = true;
		}
	for (const char *const *v = known[k].values; v != NULL && *v != NULL; v++) {
		fprintf(out, "%s%s", begun ? gap : "", *v);
		begun = true;
	}
}

/* Is the value one that there can be? A protocol's number becomes its name. */
static bool
is_value(int k, const char **value)
{
	char *end;
	unsigned long n = strtoul(*value, &end, 10);

	if (known[k].kind == SOURCE && **value >= '0' && **value <= '9' && *end == '\0' &&
	    n < 256) {
		if (rtproto_name((uint8_t)n) != NULL)
			*value = rtproto_name((uint8_t)n);
		return true;
	}
	for (unsigned int i = 0; known[k].kind == SOURCE && i < N_SOURCE; i++)
		if (source_name(i) != NULL && strcmp(source_name(i), *value) == 0)
			return true;
	for (const char *const *v = known[k].values; v != NULL && *v != NULL; v++)
		if (strcmp(*v, *value) == 0)
			return true;
	return known[k].kind != SOURCE && known[k].values == NULL;
}

bool
choose_knows(const char *show, const char *word)
{
	return find(show, word) >= 0;
}

int
choose_take(struct choose *c, const char *show, const char *word, const char *value)
{
	int i = find(show, word);
	struct prefix p;
	bool is_addr;

	if (value == NULL || value[0] == '\0') {
		fprintf(stderr, "fpmctl: %s needs %s\n", word, known[i].value);
		return usage("show");
	}
	if (c->value[i] != NULL) {
		fprintf(stderr, "fpmctl: %s is given twice\n", word);
		return usage("show");
	}
	if (known[i].kind == ADDRESS &&
	    (prefix_parse(value, &p, &is_addr) < 0 || !is_addr)) {
		fprintf(stderr, "fpmctl: via '%s' is not an address\n", value);
		return usage("show");
	}
	if (!is_value(i, &value)) {
		fprintf(stderr, "fpmctl: %s '%s' is none of ", word, value);
		values_print(stderr, i, ", ");
		fputs(known[i].kind == SOURCE ? ", nor a number below 256\n" : "\n",
		      stderr);
		return CTL_USAGE;
	}
	c->value[i] = value;
	c->any = true;
	return CTL_OK;
}

static bool
same_address(const char *text, const char *other)
{
	struct prefix a, b;

	return prefix_parse(text, &a, NULL) == 0 && prefix_parse(other, &b, NULL) == 0 &&
	       a.family == b.family && memcmp(&a.addr, &b.addr, sizeof(a.addr)) == 0;
}

/* "2026-11-22T02:24:21.764Z I port: ...": as bad as the level, or worse? */
static bool
bad_enough(const char *line, const char *level)
{
	const char *blank = strchr(line, ' ');
	const char *at =
		blank != NULL && blank[1] != '\0' ? strchr(levels, blank[1]) : NULL;

	return at != NULL && at - levels <= level_of(level);
}

static bool
is_so(int i, const json_t *row, const char *value)
{
	const char *text = row_str(row, known[i].key);

	switch (known[i].kind) {
	case ADDRESS:
		return same_address(text, value);
	case SOURCE: /* as the table has it */
		if (strcmp(row_str(row, "source"), "zebra") != 0)
			text = row_str(row, "source");
		break;
	case LEVEL:
		return bad_enough(text, value);
	case TEXT:
	case ONE_OF:
		break;
	}
	return strcmp(text, value) == 0;
}

/* Is there one way out for which all is so that is asked of ways? */
static bool
has_way(const struct choose *c, const json_t *row)
{
	const json_t *hop;
	bool asked = false;
	size_t h;

	for (int i = 0; i < N_CHOOSE; i++)
		asked |= known[i].hops && c->value[i] != NULL;
	json_array_foreach (json_object_get(row, "nexthops"), h, hop) {
		bool all = true;

		for (int i = 0; i < N_CHOOSE; i++)
			if (known[i].hops && c->value[i] != NULL)
				all = all && is_so(i, hop, c->value[i]);
		if (all)
			return true;
	}
	return !asked;
}

bool
choose_wants(const struct choose *c, const json_t *row)
{
	if (!c->any)
		return true;
	for (int i = 0; i < N_CHOOSE; i++)
		if (!known[i].hops && c->value[i] != NULL && !is_so(i, row, c->value[i]))
			return false;
	return has_way(c, row);
}

const char *
choose_text(const struct choose *c, char buf[CHOOSE_TEXT])
{
	size_t n = 0;

	buf[0] = '\0';
	for (int i = 0; i < N_CHOOSE; i++)
		if (c->value[i] != NULL && n < CHOOSE_TEXT)
			n += (size_t)snprintf(buf + n, CHOOSE_TEXT - n, "%s%s %s",
					      n > 0 ? " " : "", known[i].word, c->value[i]);
	return buf;
}

void
choose_help(FILE *out, const char *show)
{
	const char *gap = "          only with ";

	for (int i = 0; i < N_CHOOSE; i++)
		if ((known[i].of & of_show(show)) != 0) {
			fprintf(out, "%s%s %s", gap, known[i].word, known[i].value);
			gap = ", ";
		}
	if (gap[0] == ',')
		fputc('\n', out);
}

void
choose_words(FILE *out, const char *show, const char *last)
{
	int k = find(show, last);

	for (int i = 0; i < N_CHOOSE && k < 0; i++)
		if ((known[i].of & of_show(show)) != 0)
			fprintf(out, " %s", known[i].word);
	if (k >= 0)
		values_print(out, k, " ");
}
