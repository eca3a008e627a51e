/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compute Levenshtein's distance of two short words with one row of the usual table. No
 * state.
 */
#include "base/edit_distance.h"

#include <string.h>

unsigned int
edit_distance(const char *a, const char *b)
{
	unsigned int row[EDIT_WORD_MAX + 1];
	size_t na = strlen(a), nb = strlen(b);

	if (na > EDIT_WORD_MAX || nb > EDIT_WORD_MAX)
		return EDIT_WORD_MAX;
	for (size_t j = 0; j <= nb; j++)
		row[j] = (unsigned int)j;
	for (size_t i = 1; i <= na; i++) {
		unsigned int corner = row[0];

		row[0] = (unsigned int)i;
		for (size_t j = 1; j <= nb; j++) {
			unsigned int best = corner + (a[i - 1] != b[j - 1]);

			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			corner = row[j];
			row[j] = best;
		}
	}
	return row[nb];
}
