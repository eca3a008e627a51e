/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * filter: words that select rows of an answer: by next hop, protocol or state; lines of
 * the log by level. `fpmctl show` has them as words, the control protocol as keys, HTTP as
 * parameters.                                                [any thread, no side effects]
 */
#ifndef BASE_FILTER_H
#define BASE_FILTER_H

#include <stdbool.h>
#include <stddef.h>

#define N_CHOOSE     7
#define CHOOSE_VALUE 64  /* octets of a value, terminator included */
#define CHOOSE_TEXT  160 /* octets of choose_text() */
#define CHOOSE_WORDS 64  /* octets of choose_words() */
#define CHOOSE_WHY   448 /* octets of a refusal, which may list all values */
/* letters of the levels, as in a line of the log after its time; most severe first */
#define CHOOSE_LEVELS "EWID"

enum choose_kind {
	CHOOSE_ANY,     /* any text */
	CHOOSE_ADDRESS, /* an address, in any spelling */
	/* source of a route: a protocol by name or number, or a table of the daemon */
	CHOOSE_SOURCE,
	CHOOSE_ONE_OF,
	CHOOSE_LEVEL, /* this level or a more severe one */
};

struct choose_word {
	const char *word, *value; /* as help shows them */
	const char *key; /* key of the row; with `hops`, key of any next hop in the row */
	unsigned int of; /* `show` commands that have the word, as bits */
	enum choose_kind kind;
	bool hops;
	const char *const
		*values; /* all accepted values, NULL ends the list; NULL: any value */
};
extern const struct choose_word choose_word[N_CHOOSE];

/* A parsed filter; all zero: no filter. */
struct choose {
	char value[N_CHOOSE][CHOOSE_VALUE]; /* "": not given */
	bool any;
};

/* Return true if any `show` has the filter word. */
bool choose_is_word(const char *word);
/* Return the index of the filter word among those of `show`, or -1. */
int choose_find(const char *show, const char *word);

/*
 * List the words of a `show`, "via dev proto state " (CHOOSE_WORDS octets). Returns buf.
 */
const char *choose_words(const char *show, char *buf);

/*
 * List the values that word `k` accepts, separated by `gap`; "" when it accepts any.
 * Returns buf.
 */
const char *choose_values(int k, const char *gap, char *buf, size_t size);

/*
 * Add word `k` with its value to the filter. Returns 0, or -EINVAL with a sentence in
 * `why`, for which CHOOSE_WHY octets are enough.
 */
int choose_take(struct choose *c, int k, const char *value, char *why, size_t why_size);

/* Return the number of a level, 0 for the most severe; -1: no such level. */
int choose_level(const char *name);

/* Format the filter, "via 192.0.2.1 dev wan0". Returns buf. */
const char *choose_text(const struct choose *c, char buf[CHOOSE_TEXT]);

#endif
