/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * haste: waits that tests shorten. FPM_DATAPLANE_HASTE=n in the environment divides each wait that
 * goes through here by n: tests see in seconds how a program gives up on another one after half a
 * minute. Without it, or if n is no number from 1 to 1000, each wait is as long as it is written.
 */
#ifndef BASE_HASTE_H
#define BASE_HASTE_H

#include <stdlib.h>

/* The time to wait instead of `ms` milliseconds.                            [any thread] */
static inline unsigned int
haste_ms(unsigned int ms)
{
	const char *text = getenv("FPM_DATAPLANE_HASTE");
	unsigned long n = text != NULL ? strtoul(text, NULL, 10) : 1;

	return n >= 1 && n <= 1000 ? ms / (unsigned int)n : ms;
}

#endif
