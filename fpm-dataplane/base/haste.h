/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * haste: shorten waits in tests. FPM_DATAPLANE_HASTE=n in the environment divides each
 * wait that uses haste_ms() by n, so that a test sees within seconds how a program gives
 * up after half a minute. Without the variable, or if n is not a number from 1 to 1000,
 * waits have their full length.
 */
#ifndef BASE_HASTE_H
#define BASE_HASTE_H

#include <stdlib.h>

/* Return the time to wait instead of `ms` milliseconds.                    [any thread] */
static inline unsigned int
haste_ms(unsigned int ms)
{
	const char *text = getenv("FPM_DATAPLANE_HASTE");
	unsigned long n = text != NULL ? strtoul(text, NULL, 10) : 1;

	return n >= 1 && n <= 1000 ? ms / (unsigned int)n : ms;
}

#endif
