/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Count how many routes zebra has in each table, and how many of them its session has not
 * sent (yet). [rib]. Table main and labels are replayed together and counted together. Each
 * other table, of a VRF or not, has a record of its own while zebra has a route in it: the
 * sweep depends on which VRFs a replay has mentioned (sweep.c).
 */
#include "rib/table_count.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rib/index.h"
#include "rib/impl.h"
#include "rib/routes.h"

static uint32_t
table_count_number(const struct rib *rib, uint32_t table)
{
	uint32_t i = hidx_first(&rib->table_counts.by_table, hash32(table));

	while (i != 0 && rib->table_counts.v[i].table != table)
		i = hidx_next(&rib->table_counts.by_table, i);
	return i;
}

const struct table_count *
table_count_find(const struct rib *rib, uint32_t table)
{
	uint32_t i = table_count_number(rib, table);

	return i == 0 ? NULL : &rib->table_counts.v[i];
}

static uint32_t
table_count_new(struct rib *rib, uint32_t table)
{
	uint32_t i = number_get(&rib->table_counts.unused, &rib->table_counts.high);

	rib->table_counts.v = table_grow(rib->table_counts.v, &rib->table_counts.cap, i,
					 sizeof(*rib->table_counts.v));
	rib->table_counts.v[i] = (struct table_count){.table = table};
	hidx_add(&rib->table_counts.by_table, hash32(table), i);
	return i;
}

/* Return the counter of a route that is replayed with main. */
static uint32_t *
replayed_count(struct rib *rib, const struct route *r)
{
	return r->family == FAMILY_LABEL ? &rib->table_counts.n_labels
					 : &rib->table_counts.n_zebra[r->family == 6];
}

/* Return false for the MACs of EVPN: zebra does not replay them, and they have no table. */
static bool
route_is_counted(const struct route *r)
{
	return r->table != FPM_TABLE_NONE;
}

static void
table_confirm(struct rib *rib, const struct route *r, bool stale)
{
	uint32_t i = table_count_number(rib, r->table);
	struct table_count *t;

	if (i == 0)
		i = table_count_new(rib, r->table);
	t = &rib->table_counts.v[i];
	t->n += r->zslot == 0;
	t->stale -= stale;
	t->gen = rib->session.gen;
	rib->table_counts.stale_other -= stale;
}

void
table_count_confirm(struct rib *rib, struct route *r)
{
	bool stale = r->zslot != 0 && r->gen != rib->session.gen;

	r->gen = rib->session.gen;
	if (route_is_replayed(r)) {
		*replayed_count(rib, r) += r->zslot == 0;
		rib->table_counts.stale -= stale;
	} else if (route_is_counted(r)) {
		table_confirm(rib, r, stale);
	}
}

static void
table_remove(struct rib *rib, const struct route *r, bool stale)
{
	uint32_t i = table_count_number(rib, r->table);
	struct table_count *t = &rib->table_counts.v[i];

	t->n--;
	t->stale -= stale;
	rib->table_counts.stale_other -= stale;
	if (t->n > 0)
		return;
	hidx_del(&rib->table_counts.by_table, i);
	*t = (struct table_count){0};
	vec32_push(&rib->table_counts.unused, i);
}

void
table_count_remove(struct rib *rib, const struct route *r)
{
	bool stale = r->gen != rib->session.gen;

	if (route_is_replayed(r)) {
		--*replayed_count(rib, r);
		rib->table_counts.stale -= stale;
	} else if (route_is_counted(r)) {
		table_remove(rib, r, stale);
	}
}

void
table_count_mention(struct rib *rib, uint32_t table)
{
	uint32_t i = table_count_number(rib, table);

	if (i != 0)
		rib->table_counts.v[i].gen = rib->session.gen;
}

void
table_counts_begin_session(struct rib *rib)
{
	rib->table_counts.stale = rib->table_counts.n_zebra[0] +
				  rib->table_counts.n_zebra[1] + rib->table_counts.n_labels;
	rib->table_counts.stale_other = 0;
	for (uint32_t i = 1; i <= rib->table_counts.high; i++) {
		rib->table_counts.v[i].stale = rib->table_counts.v[i].n;
		rib->table_counts.stale_other += rib->table_counts.v[i].n;
	}
}

bool
table_count_not_replayed(const struct rib *rib, const struct table_count *t)
{
	return t->stale > 0 && t->gen != rib->session.gen;
}

void
table_count_vrf_removed(struct rib *rib, uint32_t table, const char *name)
{
	uint32_t i = table_count_number(rib, table);

	if (i != 0)
		snprintf(rib->table_counts.v[i].removed_vrf,
			 sizeof(rib->table_counts.v[i].removed_vrf), "%s", name);
}

void
table_count_vrf_added(struct rib *rib, uint32_t table, const char *name)
{
	uint32_t i = table_count_number(rib, table);
	struct table_count *t;

	if (i == 0) /* the table has no routes */
		return;
	t = &rib->table_counts.v[i];
	if (t->removed_vrf[0] == '\0')
		return;
	if (strcmp(t->removed_vrf, name) != 0) {
		t->foreign = rib->table_counts.any_foreign = true;
		t->foreign_gen = rib->session.gen - rib->session.connected;
		log_info("rib: routes of removed vrf withdrawn old=%s new=%s table=%u",
			 t->removed_vrf, name, table);
	}
	t->removed_vrf[0] = '\0';
}

bool
table_count_is_foreign(const struct rib *rib, const struct route *r)
{
	const struct table_count *t =
		rib->table_counts.any_foreign && r->zslot != 0 && !route_is_replayed(r)
			? table_count_find(rib, r->table)
			: NULL;

	return t != NULL && t->foreign && r->gen <= t->foreign_gen;
}

void
table_counts_clear_foreign(struct rib *rib)
{
	for (uint32_t i = 1; rib->table_counts.any_foreign && i <= rib->table_counts.high;
	     i++)
		rib->table_counts.v[i].foreign = false;
	rib->table_counts.any_foreign = false;
}

void
table_counts_free(struct rib *rib)
{
	free(rib->table_counts.v);
	vec32_free(&rib->table_counts.unused);
	hidx_free(&rib->table_counts.by_table);
}
