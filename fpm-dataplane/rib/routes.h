/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Routes and the tables that they are in, found by table and prefix, or by number. [rib]
 * This header does not use struct rib.
 */
#ifndef RIB_ROUTES_H
#define RIB_ROUTES_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/fpm_event.h"
#include "base/huge.h"
#include "base/prefix.h"
#include "fib/fib.h"

#define RIB_TABLE_MAIN    254u
#define RIB_TABLE_DEFAULT 253u

static inline uint32_t
table_of_event(const struct fpm_event *ev)
{
	return ev->table == 0 ? RIB_TABLE_MAIN : ev->table;
}

/* The address follows, 4 or 16 octets: most routes are IPv4, and memory counts. */
struct route {
	uint32_t gen;  /* session in which zebra last sent it */
	uint32_t next; /* number of the next route of the bucket, or of the next free one */
	uint32_t table;
	uint32_t zslot : 20; /* slot of zebra's route; 0: none */
	uint32_t len : 8;
	uint32_t rtm_type : 4;
	uint32_t kslot : 20; /* slot of the kernel's route that precedes zebra's; 0: none */
	uint32_t protocol : 8;
	uint32_t family : 4; /* 0: entry is free */
	uint8_t octet[];
};
static_assert(sizeof(struct route) == 20, "24 octets an IPv4 route, 36 an IPv6 route");
static_assert(FIB_GROUP_MAX <= 1u << 20, "a slot's number fits");
static_assert(FAMILY_LABEL < 16 && FAMILY_MAC < 16, "a family fits");

#define ROUTE_CHUNK   4096u /* numbers for routes of one size */
#define ROUTE_CHUNKS  16384u
#define BUCKET_CHUNK  (uint32_t)(HUGE_BYTES / sizeof(uint32_t))
#define BUCKET_CHUNKS 128u

/*
 * Linear hashing (Litwin 1980): it grows by one bucket at each insert, so no insert takes
 * long.
 */
struct routes {
	uint8_t *chunk[ROUTE_CHUNKS];
	uint8_t route_bytes[ROUTE_CHUNKS]; /* of each route in the chunk */
	uint32_t *bucket[BUCKET_CHUNKS];
	uint64_t seed;
	uint32_t n, high; /* routes; highest number given out */
	uint32_t n_buckets, mask, n_chunks;
	struct {
		uint32_t free;    /* free numbers, as a list */
		uint32_t at, end; /* numbers never given out */
		uint32_t found;   /* chunk of the last result of routes_number() */
	} of[2];                  /* addresses of 4 octets, of 16 */
	uint8_t *room;            /* rest of the last huge page */
	size_t room_bytes;
};

void routes_init(struct routes *t, uint64_t seed);
void routes_free(struct routes *t);
uint64_t routes_hash(const struct routes *t, uint32_t table, const struct prefix *p);
struct route *routes_find(const struct routes *t, uint32_t table, const struct prefix *p,
			  uint64_t hash);
/* Make the buckets for `n` more routes in advance, so that they need not be split later. */
void routes_expect(struct routes *t, uint32_t n);
/* Insert a route; the key must be absent. Return NULL if out of memory. */
struct route *routes_insert(struct routes *t, uint32_t table, const struct prefix *p,
			    uint64_t hash);
/* Return true if there is memory for some thousand more routes of each size. */
bool routes_make_room(struct routes *t);
void routes_remove(struct routes *t, struct route *r);
uint32_t routes_number(struct routes *t, const struct route *r);
size_t routes_bytes(const struct routes *t);
/* Prefetch in two steps, so that the cache misses of a batch overlap. */
void routes_prefetch_bucket(const struct routes *t, uint64_t hash);
void routes_prefetch_route(const struct routes *t, uint64_t hash);

static inline struct route *
route_at(const struct routes *t, uint32_t number)
{
	uint32_t c = number / ROUTE_CHUNK;

	return (struct route *)(t->chunk[c] + number % ROUTE_CHUNK * t->route_bytes[c]);
}

static inline struct ipaddr
route_addr(const struct route *r)
{
	struct ipaddr a = {0};

	if (r->family == 4)
		memcpy(a.octet, r->octet, 4);
	else
		memcpy(a.octet, r->octet, 16);
	return a;
}

static inline struct prefix
route_prefix(const struct route *r)
{
	return (struct prefix){.addr = route_addr(r),
			       .family = (uint8_t)r->family,
			       .len = (uint8_t)r->len};
}

static inline uint32_t
route_effective(const struct route *r)
{
	return r->kslot != 0 ? r->kslot : r->zslot;
}

/*
 * Return true if zebra sends the route to a new session before the sentinel: table main and
 * labels.
 */
static inline bool
route_is_replayed(const struct route *r)
{
	return r->table == RIB_TABLE_MAIN || r->family == FAMILY_LABEL;
}

/* All routes. The tables other than main share one hash. */
struct rib_tables {
	struct routes main, other;
	uint32_t n_main[2], n_default[2]; /* of tables main and default: IPv4, IPv6 */
	uint32_t n_not_ip;                /* entries of `other` that are no IP routes */
	bool refused;                     /* some routes found no room */
	/*
	 * Time from which on to ask for routes that were not stored for lack of memory; 0:
	 * there are no such routes.
	 */
	uint64_t retry_ms;
};

static inline struct routes *
tables_routes(struct rib_tables *t, uint32_t table)
{
	return table == RIB_TABLE_MAIN ? &t->main : &t->other;
}

/* Return the route of a table for a prefix, or NULL. */
static inline struct route *
tables_find(const struct rib_tables *t, uint32_t table, const struct prefix *p)
{
	const struct routes *of = table == RIB_TABLE_MAIN ? &t->main : &t->other;

	return routes_find(of, table, p, routes_hash(of, table, p));
}

/* Count `by` more routes of a table and an IP family, for tables main and default. */
static inline void
tables_count(struct rib_tables *t, uint32_t table, uint8_t family, int by)
{
	if (table == RIB_TABLE_MAIN)
		t->n_main[family == 6] += (uint32_t)by;
	else if (table == RIB_TABLE_DEFAULT)
		t->n_default[family == 6] += (uint32_t)by;
}

/*
 * Return the last place of a walk in slices over the routes of all tables. Places begin at
 * 1. The routes of table main have the first places.
 */
static inline uint32_t
tables_walk_end(const struct rib_tables *t)
{
	return t->main.high + t->other.high;
}

/*
 * Return the route at a place of a walk, or NULL. A route never moves to a place that a
 * running walk has passed.
 */
static inline struct route *
tables_walk_at(const struct rib_tables *t, uint32_t at)
{
	struct route *r = at <= t->main.high ? route_at(&t->main, at)
					     : route_at(&t->other, at - t->main.high);

	return r->family == 0 ? NULL : r;
}

#endif
