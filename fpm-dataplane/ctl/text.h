/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * text: numbers and lines for people, and what their terminal can show.
 */
#ifndef CTL_TEXT_H
#define CTL_TEXT_H

#include <stdbool.h>
#include <stdio.h>

/* What a noun needs behind so many, "%lld packet%s"; those that need more than that. */
static inline const char *
plural(long long n)
{
	return n == 1 ? "" : "s";
}

static inline const char *
noun(long long n, const char *one, const char *many)
{
	return n == 1 ? one : many;
}

/* "12.3 MiB", "1 h 02 min": for people. Returns buf. */
const char *human_count(long long n, char buf[32]); /* "1234567", "12.3 M" */
const char *human_rate(double per_s, char buf[32]); /* "12.3 k" */
const char *human_bytes(long long bytes, char buf[32]);
const char *human_seconds(double seconds, char buf[32]);

/* Is stdout a terminal that knows escape sequences? TERM says so: not missing, empty or dumb. */
bool terminal_obeys(void);

/* On such a one, where nobody objects: NO_COLOR is not set, or is empty (no-color.org). */
bool colours_wanted(void);

/*
 * Words of `text` from column `indent` on, broken before column 80; on a terminal also words
 * that are longer than that.
 */
void wrapped_print(const char *text, int indent);

/* How a command is used. */
void usage_print(FILE *out, const char *command, const char *words);

/*
 * A line, as it is; on a terminal broken before its last column (80, or what it has more),
 * the rest `indent` from the left.
 */
void line_print(int indent, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
