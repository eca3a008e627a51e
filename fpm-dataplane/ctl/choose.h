/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * choose: words of `fpmctl show` that choose among the rows of an answer.
 */
#ifndef CTL_CHOOSE_H
#define CTL_CHOOSE_H

#include <jansson.h>
#include <stdio.h>

#include "base/filter.h"
#include "ctl/ctl.h"

/* Take word `k`, and its value (NULL: there is none). Returns CTL_OK, or CTL_USAGE after a sentence. */
int choose_read(struct choose *c, int k, const char *value);

/* What was said, as keys of the request. */
void choose_ask(const struct choose *c, json_t *request);

/* For the help a line, "only with via ADDRESS, dev NAME"; for the completion what may follow `last`. */
void choose_help(FILE *out, const char *show);
void choose_complete(FILE *out, const char *show, const char *last);

#endif
