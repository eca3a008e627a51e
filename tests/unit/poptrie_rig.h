/* SPDX-License-Identifier: BSD-3-Clause */
/* Small tables written out: prefixes and addresses as text. Include after cmocka.h. */
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

static inline struct poptrie *
table(enum poptrie_family family, enum pt_layout layout)
{
	struct poptrie_conf conf = {.family = family};
	struct poptrie *pt;

	assert_int_equal(pt_create(&pt, &conf, layout, pt_isa_best()), 0);
	return pt;
}

/* Each claim about IPv4 is checked in both layouts. */
#define FOR_LAYOUTS(pt)                                                    \
	for (int layout_ = PT_FUSED; layout_ <= PT_WIDE; layout_++)        \
		for (struct poptrie *pt = table(POPTRIE_IP4, layout_); pt; \
		     poptrie_destroy(pt), pt = NULL)

static inline void
commit(struct poptrie *pt)
{
	assert_int_equal(poptrie_commit(pt), 0);
}

#endif
