/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Find a key in a set of a ruleset. Keys are compared as octets from the first on, as the
 * kernel does. [RCU reader]
 */
#include <string.h>

#include "ruleset/ruleset.h"

/* Return the number of keys that are not above `key`. */
static uint32_t
keys_up_to(const struct ruleset_set *s, const uint8_t *key)
{
	uint32_t from = 0, to = s->n;

	while (from < to) {
		uint32_t mid = from + (to - from) / 2;

		if (memcmp(s->key + (size_t)mid * s->key_len, key, s->key_len) <= 0)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

/* Return true if each field of `key` is within the range of element `i`. */
static bool
fields_match(const struct ruleset_set *s, uint32_t i, const uint8_t *key)
{
	const uint8_t *low = s->key + (size_t)i * s->key_len;
	const uint8_t *high = s->key_end + (size_t)i * s->key_len;
	unsigned int at = 0;

	for (unsigned int f = 0; f < s->n_field; f++) {
		if (memcmp(key + at, low + at, s->field[f]) < 0 ||
		    memcmp(key + at, high + at, s->field[f]) > 0)
			return false;
		at += (s->field[f] + 3u) & ~3u;
	}
	return true;
}

static bool
element_lives(const struct ruleset_element *e, uint64_t now)
{
	return e->until == 0 || now < e->until;
}

const struct ruleset_element *
ruleset_find(const struct ruleset_set *s, const uint8_t *key, uint64_t now)
{
	uint32_t n;

	if (s->kind == SET_RANGES) {
		for (uint32_t i = 0; i < s->n; i++)
			if (fields_match(s, i, key) && element_lives(&s->element[i], now))
				return &s->element[i];
		return s->other;
	}
	/* The begin of an interval is behind the end of another one with the same key. */
	n = keys_up_to(s, key);
	if (n > 0 && !s->element[n - 1].end && element_lives(&s->element[n - 1], now) &&
	    (s->kind == SET_INTERVAL ||
	     memcmp(s->key + (size_t)(n - 1) * s->key_len, key, s->key_len) == 0))
		return &s->element[n - 1];
	return s->other;
}
