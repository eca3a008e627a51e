/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a client asks for by Accept (RFC 9110, 12.5.1): media ranges between commas, each with
 * parameters, of which q is its weight. Pure functions, any thread.
 */
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "ui/accept.h"

#define MOST 1000u /* q=1, in thousandths */

/* Octets up to one of `ends` that is in no quoted string, or to the end. */
static size_t
span(const char *p, const char *ends)
{
	bool quoted = false;
	size_t n = 0;

	for (; p[n] != '\0' && (quoted || strchr(ends, p[n]) == NULL); n++) {
		if (p[n] == '"')
			quoted = !quoted;
		else if (quoted && p[n] == '\\' && p[n + 1] != '\0')
			n++;
	}
	return n;
}

/* "0.5", of three decimals at most; what is no weight weighs nothing. */
static unsigned int
weight_of(const char *p, size_t len)
{
	unsigned int sum = 0, unit = MOST;

	while (len > 0 && (p[len - 1] == ' ' || p[len - 1] == '\t'))
		len--;
	if (len == 0 || len > 5 || (len > 1 && p[1] != '.'))
		return 0;
	for (size_t i = 0; i < len; i++) {
		if (i == 1)
			continue;
		if (p[i] < '0' || p[i] > '9')
			return 0;
		sum += (unsigned int)(p[i] - '0') * unit;
		unit /= 10;
	}
	return sum <= MOST ? sum : 0;
}

/* The weight that the parameters of a range say, from its first ';' on or its end. */
static unsigned int
weight_said(const char *p)
{
	unsigned int weight = MOST;

	while (*p == ';') {
		p++;
		p += strspn(p, " \t");
		if (strncasecmp(p, "q=", 2) == 0)
			weight = weight_of(p + 2, span(p + 2, ";,"));
		p += span(p, ";,");
	}
	return weight;
}

void
accept_add(struct accepted *of, const char *type, const char *line)
{
	size_t main = strcspn(type, "/") + 1;

	for (const char *p = line; *p != '\0'; p += *p == ',') {
		enum accept_by by = ACCEPT_BY_NAME;
		unsigned int weight;
		size_t len;

		p += strspn(p, " \t");
		len = strcspn(p, ";, \t");
		weight = weight_said(p + len + strspn(p + len, " \t"));
		if (len == 3 && strncmp(p, "*/*", 3) == 0)
			by = ACCEPT_BY_ANY;
		else if (len == main + 1 && strncasecmp(p, type, main) == 0 &&
			 p[main] == '*')
			by = ACCEPT_BY_RANGE;
		else if (len != strlen(type) || strncasecmp(p, type, len) != 0)
			by = ACCEPT_BY_NONE;
		/* The closest counts; of several as close, which differ in parameters, the best. */
		if (by > of->by || (by == of->by && weight > of->weight))
			*of = (struct accepted){by, by == ACCEPT_BY_NONE ? 0 : weight};
		p += span(p, ",");
	}
}
