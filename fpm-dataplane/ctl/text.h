/* SPDX-License-Identifier: BSD-3-Clause */
/* text: numbers and lines as text, fitted to the terminal. */
#ifndef CTL_TEXT_H
#define CTL_TEXT_H

#include <stdbool.h>
#include <stdio.h>

/*
 * Return the plural ending for `n` things, as in "%lld packet%s"; use text_noun() for nouns
 * with an irregular plural.
 */
static inline const char *
text_plural(long long n)
{
	return n == 1 ? "" : "s";
}

static inline const char *
text_noun(long long n, const char *one, const char *many)
{
	return n == 1 ? one : many;
}

/* Format a number with a unit, "12.3 MiB", "1 h 02 min". Returns buf. */
const char *human_count(long long n, char buf[32]); /* "1234567", "12.3 M" */
const char *human_rate(double per_s, char buf[32]); /* "12.3 k" */
const char *human_bytes(long long bytes, char buf[32]);
const char *human_seconds(double seconds, char buf[32]);

/*
 * Return true if stdout is a terminal with escape sequences: TERM is neither missing,
 * empty nor dumb.
 */
bool terminal_obeys(void);

/*
 * Return true if colors are wanted: the terminal has them, and NO_COLOR is not set or is
 * empty (no-color.org).
 */
bool colours_wanted(void);

/*
 * Print `text` from column `indent` on, and break lines before column 80. On a terminal,
 * words that are longer than a line are broken, too.
 */
void wrapped_print(const char *text, int indent);

/* Print the usage of a command. */
void usage_print(FILE *out, const char *command, const char *words);

/*
 * Print a line. On a terminal break it before the last column (at least 80), and indent
 * the rest by `indent`.
 */
void line_print(int indent, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
