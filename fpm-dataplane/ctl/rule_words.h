/* SPDX-License-Identifier: BSD-3-Clause */
/* rule_words: rows of `show rules` in the spelling of `ip rule`. */
#ifndef CTL_RULE_WORDS_H
#define CTL_RULE_WORDS_H

#include <jansson.h>

/*
 * Call word() for each part of a rule, in the order of `ip rule`: "not", "from all", "iif
 * lan0", "lookup main". The number of the rule is left out.
 */
void rule_words(const json_t *row, void (*word)(void *ctx, const char *text), void *ctx);

#endif
