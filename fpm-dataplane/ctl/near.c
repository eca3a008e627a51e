/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which word somebody may have meant: a hint, never what is done.
 */
#include "ctl/ctl.h"

#include <string.h>

#define WORD_MAX  16
#define SHORT_MIN 3 /* a shorter beginning says too little */

/* Letters to add, drop or change until one is the other (Levenshtein's distance). */
static size_t
distance(const char *a, const char *b)
{
	size_t row[WORD_MAX + 1];

	for (size_t j = 0; j <= strlen(b); j++)
		row[j] = j;
	for (size_t i = 1; a[i - 1] != '\0'; i++) {
		size_t corner = row[0];

		row[0] = i;
		for (size_t j = 1; j <= strlen(b); j++) {
			size_t best = corner + (a[i - 1] != b[j - 1]);

			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			corner = row[j];
			row[j] = best;
		}
	}
	return row[strlen(b)];
}

bool
is_near(const char *word, const char *known)
{
	size_t len = strlen(word);

	if (len > WORD_MAX || strlen(known) > WORD_MAX)
		return false;
	return (len >= SHORT_MIN && strncmp(word, known, len) == 0) ||
	       distance(word, known) <= len / 4;
}
