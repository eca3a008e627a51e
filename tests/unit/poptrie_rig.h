/* SPDX-License-Identifier: BSD-3-Clause */
/* Small tables as text: prefixes and addresses. Include this after cmocka.h. */
#ifndef POPTRIE_RIG_H
#define POPTRIE_RIG_H

#include "poptrie/impl.h"
#include "oracle.h"

static inline void
set(struct poptrie *pt, const char *prefix, uint32_t value)
{
	uint8_t a[16];
	unsigned int len = oracle_prefix(prefix, a);

	assert_int_equal(poptrie_add(pt, a, len, value), 0);
}

static inline int
drop(struct poptrie *pt, const char *prefix)
{
	uint8_t a[16];
	unsigned int len = oracle_prefix(prefix, a);

	return poptrie_del(pt, a, len);
}

static inline uint32_t
get(struct poptrie *pt, const char *addr)
{
	const uint8_t *key[1];
	uint32_t one, bulk, ip4;
	uint8_t a[16];

	oracle_prefix(addr, a);
	if (pt->ip6) {
		key[0] = a;
		one = poptrie6_lookup(pt, a);
		poptrie6_lookup_bulk(pt, key, &bulk, 1);
	} else {
		ip4 = (uint32_t)a[0] << 24 | a[1] << 16 | a[2] << 8 | a[3];
		one = poptrie4_lookup(pt, ip4);
		poptrie4_lookup_bulk(pt, &ip4, &bulk, 1);
	}
	assert_int_equal(one, bulk);
	return one;
}

/*
 * Parse the next pair of "NAME VALUE, NAME VALUE". "-" is the value of no route. Return
 * false at the end.
 */
static inline bool
rig_next(const char **list, char name[64], uint32_t *value)
{
	char number[16];
	int end = 0;

	if (**list == '\0')
		return false;
	assert_int_equal(sscanf(*list, " %63[^ ,] %15[0-9-]%n", name, number, &end), 2);
	*list += end;
	assert_true(**list == ',' || **list == '\0');
	*list += **list == ',';
	*value = number[0] == '-' ? POPTRIE_NONE : (uint32_t)strtoul(number, NULL, 10);
	return true;
}

/*
 * Stage changes: "10.0.0.0/8 1, 10.1.0.0/16 -" sets one route and removes another, which
 * must exist.
 */
static inline void
stage(struct poptrie *pt, const char *routes)
{
	char prefix[64];
	uint32_t value;

	while (rig_next(&routes, prefix, &value))
		if (value == POPTRIE_NONE)
			assert_int_equal(drop(pt, prefix), 0);
		else
			set(pt, prefix, value);
}

/* Assert the answer for each address: "10.1.2.3 5, 11.0.0.1 -". */
static inline void
answers(struct poptrie *pt, const char *want)
{
	char addr[64];
	uint32_t value, got;

	while (rig_next(&want, addr, &value)) {
		got = get(pt, addr);
		if (got != value)
			print_error("%s: %u, not %u\n", addr, got, value);
		assert_int_equal(got, value);
	}
}

static inline struct poptrie *
table(enum poptrie_family family, enum pt_layout layout)
{
	struct poptrie_conf conf = {.family = family};
	struct poptrie *pt;

	assert_int_equal(pt_create(&pt, &conf, layout, pt_isa_best()), 0);
	return pt;
}

/* Run a claim about IPv4 in both layouts. */
#define FOR_LAYOUTS(pt)                                                    \
	for (int layout_ = PT_FUSED; layout_ <= PT_WIDE; layout_++)        \
		for (struct poptrie *pt = table(POPTRIE_IP4, layout_); pt; \
		     poptrie_destroy(pt), pt = NULL)

/* Run a claim about IPv6 in its only layout. */
#define FOR_TABLE6(pt)                                             \
	for (struct poptrie *pt = table(POPTRIE_IP6, PT_WIDE); pt; \
	     poptrie_destroy(pt), pt = NULL)

static inline void
commit(struct poptrie *pt)
{
	assert_int_equal(poptrie_commit(pt), 0);
}

#endif
