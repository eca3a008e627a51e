/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * filter: words that choose among the rows of an answer, as they come: those by a way out, of a
 * protocol, in a state; lines of a log by how bad they are. `fpmctl show` has them as words, the
 * control protocol as keys, HTTP as parameters.            [any thread, no side effects]
 */
#ifndef BASE_FILTER_H
#define BASE_FILTER_H

#include <stdbool.h>
#include <stddef.h>

#define N_CHOOSE      7
#define CHOOSE_VALUE  64     /* octets of a value, its end included */
#define CHOOSE_TEXT   160    /* of all that was said */
#define CHOOSE_WORDS  64     /* of the words of a show */
#define CHOOSE_WHY    448    /* of a refusal, which may list all that there is */
#define CHOOSE_LEVELS "EWID" /* of a line of the log, behind its time; as bad first */

enum choose_kind {
	CHOOSE_ANY,     /* a text */
	CHOOSE_ADDRESS, /* however it is written */
	CHOOSE_SOURCE, /* whose a route is: a protocol, by name or number, or a table of ours */
	CHOOSE_ONE_OF,
	CHOOSE_LEVEL, /* as bad, or worse */
};

struct choose_word {
	const char *word, *value; /* as they are told of */
	const char *key;          /* of the row; with `hops` of any next hop in it */
	unsigned int of;          /* shows that have it */
	enum choose_kind kind;
	bool hops;
	const char *const
		*values; /* all that may be said, NULL ends them; NULL: anything */
};
extern const struct choose_word choose_word[N_CHOOSE];

/* What was said; all zero: nothing. */
struct choose {
	char value[N_CHOOSE][CHOOSE_VALUE]; /* "": not said */
	bool any;
};

/* Is it such a word, of any show? Of this one: its number, or -1. */
bool choose_is_word(const char *word);
int choose_find(const char *show, const char *word);

/* Those of a show, "via dev proto state " (CHOOSE_WORDS octets). Returns buf. */
const char *choose_words(const char *show, char *buf);

/* All that word `k` may be given, `gap` between two; "" when that is anything. Returns buf. */
const char *choose_values(int k, const char *gap, char *buf, size_t size);

/*
 * Take word `k` and its value. Returns 0, or -EINVAL with a sentence in `why`, for which
 * CHOOSE_WHY octets are enough.
 */
int choose_take(struct choose *c, int k, const char *value, char *why, size_t why_size);

/* How bad, from 0 on; -1: no such level. */
int choose_level(const char *name);

/* What was said, "via 192.0.2.1 dev wan0". Returns buf. */
const char *choose_text(const struct choose *c, char buf[CHOOSE_TEXT]);

#endif
