/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * filter: words that select rows of an answer by next hop, protocol or state, and lines of
 * the log by level. They are words in `fpmctl show`, keys in the control protocol, and
 * parameters in HTTP.                                        [any thread, no side effects]
 */
#ifndef BASE_FILTER_H
#define BASE_FILTER_H

#include <stdbool.h>
#include <stddef.h>

#define N_FILTER_WORD 9
#define FILTER_VALUE  64  /* octets of a value, terminator included */
#define FILTER_TEXT   160 /* octets of filter_text() */
#define FILTER_WORDS  64  /* octets of filter_words() */
#define FILTER_WHY    448 /* octets of a refusal, which may list all values */
/* The letters of log levels, most severe first. A log line has one after its time. */
#define FILTER_LEVELS "EWID"

enum filter_kind {
	FILTER_ANY,     /* any text */
	FILTER_ADDRESS, /* an address, in any spelling */
	/* source of a route: a protocol by name or number, or a table of the daemon */
	FILTER_SOURCE,
	FILTER_ONE_OF,
	FILTER_LEVEL, /* this level or a more severe one */
};

struct filter_word {
	const char *word, *value; /* as help shows them */
	const char *key; /* of the row; with `hops`, of its next hops: one must match */
	unsigned int of; /* `show` commands that have the word, as bits */
	enum filter_kind kind;
	bool hops;
	/* the accepted values, with NULL after the last one; no list: any value */
	const char *const *values;
};
extern const struct filter_word filter_word[N_FILTER_WORD];

/* A parsed filter; all zero: no filter. */
struct filter {
	char value[N_FILTER_WORD][FILTER_VALUE]; /* "": not given */
	bool any;
};

/* Return true if any `show` has the filter word. */
bool filter_is_word(const char *word);
/* Return the index in filter_word[] of a filter word of `show`, or -1. */
int filter_find(const char *show, const char *word);

/*
 * List the words of a `show`, "via dev proto state " (FILTER_WORDS octets). Returns buf.
 */
const char *filter_words(const char *show, char *buf);

/*
 * List the values that word `k` accepts, separated by `gap`; "" when it accepts any.
 * Returns buf.
 */
const char *filter_values(int k, const char *gap, char *buf, size_t size);

/*
 * Add word `k` with its value to the filter. Returns 0, or -EINVAL with a sentence in
 * `why`, for which FILTER_WHY octets are enough.
 */
int filter_take(struct filter *c, int k, const char *value, char *why, size_t why_size);

/* Return the number of a level, 0 for the most severe; -1: no such level. */
int filter_level(const char *name);

/* Format the filter, "via 192.0.2.1 dev wan0". Returns buf. */
const char *filter_text(const struct filter *c, char buf[FILTER_TEXT]);

#endif
