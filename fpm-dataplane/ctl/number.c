/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers on the command line: digits, and nothing that a library would guess at. No state.
 */
#include "ctl/number.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl.h"

#define DIGITS "0123456789"

bool
number_whole(const char *text, long long *out)
{
	if (text[0] == '\0' || text[strspn(text, DIGITS)] != '\0')
		return false;
	errno = 0;
	*out = strtoll(text, NULL, 10);
	return errno == 0; /* else another number would be told than was said */
}

bool
number_decimal(const char *text, double *out)
{
	size_t whole = strspn(text, DIGITS), dot = text[whole] == '.';
	size_t part = dot ? strspn(text + whole + 1, DIGITS) : 0;

	if (whole + part == 0 || text[whole + dot + part] != '\0')
		return false;
	*out = strtod(text, NULL);
	return true;
}

int
number_refused(const char *word, const char *text, const char *want)
{
	fprintf(stderr, "fpmctl: %s '%s' is not %s\n", word, text, want);
	return CTL_USAGE;
}
