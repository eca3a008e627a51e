/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * audit_table: the routes of one side of `fpmctl audit`, and the tables that they are in.
 * Memory: 56 octets per route and side.
 */
#ifndef CTL_AUDIT_TABLE_H
#define CTL_AUDIT_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/prefix.h"

/* A routing table, or the part of a table for packets from one source. */
struct place {
	char *vrf;      /* name of its VRF; NULL: it has none */
	uint32_t table; /* 254: main; 0: only zebra has its VRF */
	/* [0]: a rule of IPv4 names the table; [1]: of IPv6. False for main and VRFs. */
	bool ruled[2];
	struct prefix src; /* length 0: for all packets */
};

struct places {
	struct place *v;
	uint32_t n, cap;
	uint32_t last;      /* the place that was found last */
	uint32_t *ruled[2]; /* tables that rules name; [0]: IPv4, [1]: IPv6 */
	uint32_t n_ruled[2];
};

/* Record that a rule of a family names a table. Must precede the table's first route. */
void places_add_ruled(struct places *p, bool ip6, uint32_t table);
/* Add a table of a VRF. Copies the name. Returns its number. */
uint32_t places_add_vrf(struct places *p, const char *name, uint32_t table);
/* Return the number of a table, or of its part for source `src`. Adds it if it is new. */
uint32_t places_find(struct places *p, uint32_t table, const struct prefix *src);
/* Return the number of the table of a VRF. An unknown VRF is added, with table 0. */
uint32_t places_find_vrf(struct places *p, const char *name);
void places_free(struct places *p);

/*
 * Return true if zebra shows the routes of this place: table main or the table of a VRF,
 * but not a part for a source.
 */
static inline bool
place_is_zebras(const struct place *at)
{
	return at->src.len == 0 && (at->table == 254 || at->vrf != NULL);
}

/*
 * Return true for a table that is neither main, nor of a VRF, nor named by a rule of the
 * family. No packet uses such a table. zebra does not replay its routes, so the daemon may
 * have all, some or none of them.
 */
static inline bool
place_lacks_zebra(const struct place *at, uint8_t family)
{
	return !place_is_zebras(at) && !at->ruled[family == 6];
}

struct entry {
	struct prefix prefix;
	uint32_t place; /* in struct places */
	uint64_t hops;  /* hash of the text of the next hops */
	/*
	 * hash of the next hops as zebra's copy of the route in the kernel has them, see
	 * enum spelling; 0 in entries of zebra
	 */
	uint64_t copy;
	uint64_t rank; /* the kernel uses the route of a prefix with the lowest rank */
	bool of_zebra; /* of the RIB: it is zebra's route */
	bool hidden; /* zebra's route is in the RIB, but a route of the kernel is in force */
};

struct table {
	struct entry *entry;
	size_t n, cap;
};

/* Append an entry, whose other members the caller fills. */
struct entry *table_add(struct table *t, uint32_t place, const struct prefix *p,
			uint64_t hops);
/* Compare two entries by table and prefix. Return a value as memcmp() does. */
int entry_order(const struct entry *x, const struct entry *y);
/*
 * Sort the entries. For each prefix keep the hidden entry and the other entry of the lowest
 * rank.
 */
void table_sort(struct table *t);
void table_clear(struct table *t);

/* The form in which audit_row_text() writes the next hops. */
enum spelling {
	AS_TOLD,   /* as their source reports them; zebra: weights of 16 bits, no MTU */
	AS_KERNEL, /* as in the kernel: only the low eight bits of weight - 1 (rtnh_hops) */
	/*
	 * AS_KERNEL of IPv6 routes, without IPv4 gateways (doc/fpm.md, 5.2). A next hop
	 * without a gateway has no labels or segments: the kernel's copy may lack them.
	 */
	AS_COPY6,
};

/*
 * Return the next hops of a row of `show routes`, for its prefixes of one family, in the
 * spelling of hops_text.h; the caller frees them.
 */
char *audit_row_text(const struct place *at, const json_t *row, bool ip6, enum spelling as);
uint64_t audit_row_hash(const struct place *at, const json_t *row, bool ip6,
			enum spelling as);

#endif
