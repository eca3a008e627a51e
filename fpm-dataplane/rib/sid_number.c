/* SPDX-License-Identifier: BSD-3-Clause */
/* Write fib->sid_numbers. [rib] */
#include "rib/sid_number.h"

#include "base/log.h"
#include "fib/sid_number.h"
#include "rib/reclaim.h"
#include "rib/impl.h"
#include "rib/routes.h"
#include "rib/slot.h"
#include "rib/vrf.h"

/* Count a SID with a prefix of `len` bits that has come (1) or gone (-1). */
static void
len_count(struct rib *rib, uint8_t len, int by)
{
	_Atomic uint64_t *lens = &rib->fib->sid_numbers->lens[(len - 1) / 64];
	uint64_t bit = 1ull << (len - 1) % 64,
		 now = atomic_load_explicit(lens, memory_order_relaxed);

	rib->sid_numbers.of_len[len] += (uint32_t)by;
	now = rib->sid_numbers.of_len[len] == 0 ? now & ~bit : now | bit;
	atomic_store_explicit(lens, now, memory_order_relaxed);
}

/* Return a number without a SID; 0: all are in use. */
static uint32_t
number_take(struct rib *rib)
{
	struct fib_sid_numbers *t = rib->fib->sid_numbers;
	uint32_t high = atomic_load_explicit(&t->high, memory_order_relaxed);

	if (fifo32_len(&rib->sid_numbers.unused) > 0)
		return fifo32_pop(&rib->sid_numbers.unused);
	if (high + 1 < SIDS_MAX) {
		atomic_store_explicit(&t->high, high + 1, memory_order_relaxed);
		return high + 1;
	}
	if (!rib->sid_numbers.full_said)
		log_warn("rib: sid not counted reason=too-many max=%u", SIDS_MAX - 1);
	rib->sid_numbers.full_said = true;
	return 0;
}

/* Count a SID that has come to a table (1) or has gone (-1). */
static void
table_count(struct rib *rib, uint32_t table, int by)
{
	if (table == RIB_TABLE_MAIN)
		return;
	rib->sid_numbers.n_not_main += (uint32_t)by;
	atomic_store_explicit(&rib->fib->sid_numbers->n_not_main,
			      rib->sid_numbers.n_not_main, memory_order_relaxed);
}

/* Return true if forwarders look up in the table: it is main, or has a FIB. */
static bool
table_is_looked_up(const struct rib *rib, uint32_t table)
{
	return table == RIB_TABLE_MAIN || vrf_find(rib, table) != NULL;
}

static void
number_set_vrf(struct rib *rib, uint32_t number, uint32_t table)
{
	atomic_store_explicit(&rib->fib->sid_numbers->of[number].vrf,
			      vrf_of_table(rib, table), memory_order_relaxed);
}

static void
number_add(struct rib *rib, uint32_t table, const struct prefix *p)
{
	struct fib_sid_numbers *t = rib->fib->sid_numbers;
	_Atomic uint32_t *first =
		&t->first[sid_bucket(rib->fib->seed, table, &p->addr, p->len)];
	static const struct sid_counters none;
	uint32_t number = number_take(rib);
	struct fib_sid_number *of = &t->of[number];

	if (number == 0)
		return;
	of->addr = p->addr;
	of->table = table;
	atomic_store_explicit(&of->vrf, vrf_of_table(rib, table), memory_order_relaxed);
	counters_sid(number, &none, &of->base);
	atomic_store_explicit(&of->next, atomic_load_explicit(first, memory_order_relaxed),
			      memory_order_relaxed);
	/* Release: a reader of the length or of the bucket sees address and base. */
	atomic_store_explicit(&of->len, p->len, memory_order_release);
	atomic_store_explicit(first, number, memory_order_release);
	len_count(rib, p->len, 1);
	table_count(rib, table, 1);
}

static void
number_del(struct rib *rib, uint32_t number)
{
	struct fib_sid_numbers *t = rib->fib->sid_numbers;
	struct prefix p = fib_sid_number_prefix(rib->fib, number);
	uint32_t table = t->of[number].table;
	_Atomic uint32_t *at = &t->first[sid_bucket(rib->fib->seed, table, &p.addr, p.len)];
	uint32_t i;

	while ((i = atomic_load_explicit(at, memory_order_relaxed)) != number)
		at = &t->of[i].next;
	/* A reader that is at the entry still finds the next one: `next` stays. */
	atomic_store_explicit(
		at, atomic_load_explicit(&t->of[number].next, memory_order_relaxed),
		memory_order_release);
	atomic_store_explicit(&t->of[number].len, 0, memory_order_relaxed);
	len_count(rib, p.len, -1);
	table_count(rib, table, -1);
	vec32_push(&reclaim_open(rib)->sids, number);
}

void
sid_number_settle(struct rib *rib, const struct route *r)
{
	uint32_t slot, number;
	struct prefix p;
	bool is_sid;

	if (r->family != 6 || r->len == 0)
		return;
	slot = route_effective(r);
	is_sid = slot != 0 && slot_at(&rib->slots, slot)->end_point;
	if (!is_sid && rib->sid_numbers.of_len[r->len] == 0)
		return;
	if (!table_is_looked_up(rib, r->table))
		return;
	p = route_prefix(r);
	number = fib_sid_number_of(rib->fib, r->table, &p.addr, p.len);
	if (is_sid && number == 0)
		number_add(rib, r->table, &p);
	else if (!is_sid && number != 0)
		number_del(rib, number);
	else if (is_sid) /* rules may have named the table before its VRF came */
		number_set_vrf(rib, number, r->table);
}

void
sid_numbers_end_tables(struct rib *rib)
{
	const struct fib_sid_numbers *t = rib->fib->sid_numbers;
	uint32_t high = atomic_load_explicit(&t->high, memory_order_relaxed);

	if (!rib->vrfs.table_ended)
		return;
	rib->vrfs.table_ended = false;
	for (uint32_t i = 1; i <= high && rib->sid_numbers.n_not_main > 0; i++) {
		if (atomic_load_explicit(&t->of[i].len, memory_order_relaxed) == 0)
			continue;
		if (!table_is_looked_up(rib, t->of[i].table))
			number_del(rib, i);
		else
			number_set_vrf(rib, i, t->of[i].table);
	}
}

void
sid_number_put(struct rib *rib, uint32_t number)
{
	fifo32_push(&rib->sid_numbers.unused, number);
}

void
sid_number_count(const struct rib *rib, uint32_t number, struct sid_counters *sum)
{
	counters_sid(number, &rib->fib->sid_numbers->of[number].base, sum);
}
