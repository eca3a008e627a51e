/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers on the command line. One with a sign, a unit, an exponent or blanks is none: what
 * it might have meant is not guessed.
 */
#ifndef CTL_NUMBER_H
#define CTL_NUMBER_H

#include <stdbool.h>

/* Is `text` a whole number, of those that *out can have? Then it has it. */
bool number_whole(const char *text, long long *out);

/* Is it one that may have a fraction, "2", "0.5"? Then *out has it. */
bool number_decimal(const char *text, double *out);

/* "fpmctl: rate '1.5' is not WANT", which says what is allowed. Returns CTL_USAGE. */
int number_refused(const char *word, const char *text, const char *want);

#endif
