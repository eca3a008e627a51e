/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * choose: words of `fpmctl show` that choose among the rows of an answer.
 */
#ifndef CTL_CHOOSE_H
#define CTL_CHOOSE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "ctl/ctl.h"

#define N_CHOOSE    7
#define CHOOSE_TEXT 160

/* What was said; all zero: nothing. */
struct choose {
	const char *value[N_CHOOSE]; /* NULL: not said */
	bool any;
};

/* Is it such a word, behind `show SHOW`? */
bool choose_knows(const char *show, const char *word);

/* Take one, and its value (NULL: there is none). Returns CTL_OK, or CTL_USAGE after a sentence. */
int choose_take(struct choose *c, const char *show, const char *word, const char *value);

/* Is the row one of those that were asked for? */
bool choose_wants(const struct choose *c, const json_t *row);

/* What was said, "via 192.0.2.1 dev wan0". Returns buf. */
const char *choose_text(const struct choose *c, char buf[CHOOSE_TEXT]);

/* For the help a line, "only with via ADDRESS, dev NAME"; for the completion what may follow `last`. */
void choose_help(FILE *out, const char *show);
void choose_words(FILE *out, const char *show, const char *last);

#endif
