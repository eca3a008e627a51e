/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Find a key in a set of a ruleset. Keys are compared as octets from the first on, as the
 * kernel does. [RCU reader]
 */
#include <string.h>

#include "base/inet.h"
#include "poptrie/poptrie.h"
#include "ruleset/ruleset.h"

/* Return the number of keys that are not above `key`. */
static uint32_t
keys_up_to(const struct ruleset_content *c, const uint8_t *key, unsigned int len)
{
	uint32_t from = 0, to = c->n;

	while (from < to) {
		uint32_t mid = from + (to - from) / 2;

		if (memcmp(c->key + (size_t)mid * len, key, len) <= 0)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

/* Return true if each field of `key` is within the range of element `i`. */
static bool
fields_match(const struct ruleset_set *s, const struct ruleset_content *c, uint32_t i,
	     const uint8_t *key)
{
	const uint8_t *low = c->key + (size_t)i * s->key_len;
	const uint8_t *high = c->key_end + (size_t)i * s->key_len;
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

static const struct ruleset_element *
element_find(const struct ruleset_set *s, const struct ruleset_content *c,
	     const uint8_t *key, uint64_t now)
{
	uint32_t n;

	if (s->kind == SET_RANGES) {
		for (uint32_t i = 0; i < c->n; i++)
			if (fields_match(s, c, i, key) &&
			    element_lives(&c->element[i], now))
				return &c->element[i];
		return NULL;
	}
	/*
	 * If an interval begins where another interval ends, the array has the end first,
	 * then the start.
	 */
	n = keys_up_to(c, key, s->key_len);
	if (n > 0 && !c->element[n - 1].end && element_lives(&c->element[n - 1], now) &&
	    (s->kind == SET_INTERVAL ||
	     memcmp(c->key + (size_t)(n - 1) * s->key_len, key, s->key_len) == 0))
		return &c->element[n - 1];
	return NULL;
}

const struct ruleset_element *
ruleset_find(const struct ruleset_set *s, const uint8_t *key, uint64_t now)
{
	static const struct ruleset_element member = {.chain = RULESET_NONE};
	const struct ruleset_element *e;

	if (s->kind == SET_PREFIXES)
		e = (s->key_len == 4 ? poptrie4_lookup(s->pt, get_be32(key))
				     : poptrie6_lookup(s->pt, key)) != POPTRIE_NONE
			    ? &member
			    : NULL;
	else
		e = element_find(s, atomic_load_explicit(&s->content, memory_order_acquire),
				 key, now);
	if (e == NULL && s->other != NULL && element_lives(s->other, now))
		return s->other;
	return e;
}
