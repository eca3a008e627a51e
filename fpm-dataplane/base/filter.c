/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of filter words: the `show` commands that have each word and the values that
 * each accepts. fpmctl parses words of the command line with it, ui parses requests.
 * ui/rows.c applies a filter to a row.
 */
#include "base/filter.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/prefix.h"
#include "base/rtproto.h"

#define ROUTES    1u
#define GROUPS    2u
#define NEIGHBORS 4u
#define LOG       8u
#define NEXTHOPS  16u
#define LABELS    32u

/* The states of dist/openapi.yaml (State, and state of Neighbor); NULL ends each list. */
static const char *const route_states[] = {
	"forwarding",  "local",       "onlink", "broadcast",     "blackhole",
	"unreachable", "prohibit",    "throw",  "foreign",       "through-kernel",
	"unresolved",  "unsupported", "down",   "not-installed", NULL};
static const char *const neighbor_states[] = {"reachable", "stale",      "delay",  "probe",
					      "permanent", "incomplete", "failed", "noarp",
					      "none",      NULL};
static const char *const nexthop_states[] = {
	"forwarding",     "failed",     "bfd-down",    "onlink", "blackhole",    "foreign",
	"through-kernel", "unresolved", "unsupported", "down",   "no-adjacency", NULL};
static const char *const level_names[] = {"error", "warn", "info", "debug", NULL};

const struct filter_word filter_word[N_FILTER_WORD] = {
	{"via", "ADDRESS", "via", ROUTES | GROUPS | LABELS, FILTER_ADDRESS, true, NULL},
	{"dev", "NAME", "dev", ROUTES | GROUPS | LABELS, FILTER_ANY, true, NULL},
	{"via", "ADDRESS", "via", NEXTHOPS, FILTER_ADDRESS, false, NULL},
	{"dev", "NAME", "dev", NEIGHBORS | NEXTHOPS, FILTER_ANY, false, NULL},
	{"proto", "NAME", "protocol", ROUTES, FILTER_SOURCE, false, NULL},
	{"state", "NAME", "state", ROUTES | GROUPS | LABELS, FILTER_ONE_OF, false,
	 route_states},
	{"state", "NAME", "state", NEIGHBORS, FILTER_ONE_OF, false, neighbor_states},
	{"state", "NAME", "state", NEXTHOPS, FILTER_ONE_OF, false, nexthop_states},
	{"level", "error|warn|info|debug", "line", LOG, FILTER_LEVEL, false, level_names},
};

static const struct {
	const char *show;
	unsigned int of;
} shows[] = {
	{"routes", ROUTES},       {"nexthops", NEXTHOPS}, {"groups", GROUPS},
	{"neighbors", NEIGHBORS}, {"log", LOG},           {"labels", LABELS},
};

static unsigned int
show_bits(const char *show)
{
	for (unsigned int i = 0; i < sizeof(shows) / sizeof(shows[0]); i++)
		if (strcmp(show, shows[i].show) == 0)
			return shows[i].of;
	return 0;
}

bool
filter_is_word(const char *word)
{
	for (int i = 0; i < N_FILTER_WORD; i++)
		if (strcmp(word, filter_word[i].word) == 0)
			return true;
	return false;
}

int
filter_find(const char *show, const char *word)
{
	for (int i = 0; i < N_FILTER_WORD; i++)
		if ((filter_word[i].of & show_bits(show)) != 0 &&
		    strcmp(word, filter_word[i].word) == 0)
			return i;
	return -1;
}

const char *
filter_words(const char *show, char *buf)
{
	size_t n = 0;

	buf[0] = '\0';
	for (int i = 0; i < N_FILTER_WORD; i++)
		if ((filter_word[i].of & show_bits(show)) != 0)
			n += (size_t)snprintf(buf + n, FILTER_WORDS - n, "%s ",
					      filter_word[i].word);
	return buf;
}

int
filter_level(const char *name)
{
	for (int i = 0; level_names[i] != NULL; i++)
		if (strcmp(name, level_names[i]) == 0)
			return i;
	return -1;
}

/*
 * Return the n-th value of `proto`: each protocol name once, then the daemon's own tables.
 * NULL: number n has no name, or an earlier number has the same name.
 */
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

/* Return the n-th value that word `k` accepts; NULL: there is no such value. */
static const char *
value_name(int k, unsigned int n)
{
	const char *const *values = filter_word[k].values;

	if (filter_word[k].kind == FILTER_SOURCE)
		return n < N_SOURCE ? source_name(n) : NULL;
	for (unsigned int i = 0; values != NULL && values[i] != NULL; i++)
		if (i == n)
			return values[i];
	return NULL;
}

const char *
filter_values(int k, const char *gap, char *buf, size_t size)
{
	size_t n = 0;

	buf[0] = '\0';
	for (unsigned int i = 0; i < N_SOURCE; i++)
		if (value_name(k, i) != NULL && n < size)
			n += (size_t)snprintf(buf + n, size - n, "%s%s", n > 0 ? gap : "",
					      value_name(k, i));
	return buf;
}

/*
 * Return true if word `k` accepts the value. Replaces the number of a protocol by its
 * name.
 */
static bool
value_accept(int k, const char **value)
{
	char *end;
	unsigned long n = strtoul(*value, &end, 10);

	if (filter_word[k].kind == FILTER_SOURCE && **value >= '0' && **value <= '9' &&
	    *end == '\0' && n < 256) {
		if (rtproto_name((uint8_t)n) != NULL)
			*value = rtproto_name((uint8_t)n);
		return true;
	}
	for (unsigned int i = 0; i < N_SOURCE; i++)
		if (value_name(k, i) != NULL && strcmp(value_name(k, i), *value) == 0)
			return true;
	return filter_word[k].kind != FILTER_SOURCE && filter_word[k].values == NULL;
}

int
filter_take(struct filter *c, int k, const char *value, char *why, size_t why_size)
{
	const char *word = filter_word[k].word;
	char values[FILTER_WHY], echo[128];
	struct prefix p;
	bool is_addr;

	log_escape(value, strnlen(value, 30), echo, sizeof(echo));
	if (value[0] == '\0')
		snprintf(why, why_size, "%s needs %s", word, filter_word[k].value);
	else if (c->value[k][0] != '\0')
		snprintf(why, why_size, "%s is given twice", word);
	else if (strlen(value) >= FILTER_VALUE)
		snprintf(why, why_size, "%s is longer than %d octets", word,
			 FILTER_VALUE - 1);
	else if (filter_word[k].kind == FILTER_ADDRESS &&
		 (prefix_parse(value, &p, &is_addr) < 0 || !is_addr))
		snprintf(why, why_size, "%s '%s' is not an address", word, echo);
	else if (!value_accept(k, &value))
		snprintf(why, why_size, "%s '%s' is none of %s%s", word, echo,
			 filter_values(k, ", ", values, sizeof(values)),
			 filter_word[k].kind == FILTER_SOURCE ? ", nor a number below 256"
							      : "");
	else
		why = NULL;
	if (why != NULL)
		return -EINVAL;
	strcpy(c->value[k], value);
	c->any = true;
	return 0;
}

const char *
filter_text(const struct filter *c, char buf[FILTER_TEXT])
{
	size_t n = 0;

	buf[0] = '\0';
	for (int i = 0; i < N_FILTER_WORD; i++)
		if (c->value[i][0] != '\0' && n < FILTER_TEXT)
			n += (size_t)snprintf(buf + n, FILTER_TEXT - n, "%s%s %s",
					      n > 0 ? " " : "", filter_word[i].word,
					      c->value[i]);
	return buf;
}
