/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random octets, many at a time. random() alone would be slow: it takes a lock in each
 * call.
 */
#ifndef RANDOM_FILL_H
#define RANDOM_FILL_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Fill `n` octets at `at`. They depend on srandom(). (Marsaglia, Xorshift RNGs, 2003.) */
static inline void
random_fill(void *at, size_t n)
{
	uint64_t x = (uint64_t)random() << 32 ^ (uint64_t)random() << 1 ^ 1;

	for (size_t done = 0; done < n; done += sizeof(x)) {
		size_t left = n - done;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		memcpy((uint8_t *)at + done, &x, left < sizeof(x) ? left : sizeof(x));
	}
}

#endif
