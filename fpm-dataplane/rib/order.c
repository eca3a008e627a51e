/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A radix sort of numbers, from the last digit to the first, in time that grows with the
 * count of numbers and not with their order. No state. [any thread]
 */
#include "rib/order.h"

#include <string.h>

#define DIGIT_BITS 11u
#define DIGITS     3u
#define N_VALUES   (1u << DIGIT_BITS)

static unsigned int
word_digit(uint64_t word, unsigned int pass)
{
	return (unsigned int)(word >> (32 + pass * DIGIT_BITS)) & (N_VALUES - 1);
}

/* Replace the count of each value of a digit by the index of its first word. */
static void
digit_begins(uint32_t *count)
{
	uint32_t at = 0, n;

	for (unsigned int i = 0; i < N_VALUES; i++) {
		n = count[i];
		count[i] = at;
		at += n;
	}
}

uint64_t *
order_by_key(uint64_t *word, uint64_t *spare, uint32_t n)
{
	uint32_t count[DIGITS][N_VALUES] = {0};

	for (uint32_t i = 0; i < n; i++)
		for (unsigned int pass = 0; pass < DIGITS; pass++)
			count[pass][word_digit(word[i], pass)]++;
	for (unsigned int pass = 0; pass < DIGITS && n > 0; pass++) {
		uint64_t *from = word;

		if (count[pass][word_digit(word[0], pass)] == n)
			continue; /* all words have the same digit */
		digit_begins(count[pass]);
		for (uint32_t i = 0; i < n; i++)
			spare[count[pass][word_digit(from[i], pass)]++] = from[i];
		word = spare;
		spare = from;
	}
	return word;
}
