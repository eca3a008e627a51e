/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many routes zebra has in each table, and how many of those its session has not said
 * (yet). [rib]. Table main and labels are replayed together and counted together; each other
 * table has a record of its own, be it a VRF's or not, while zebra has a route in it: which
 * VRFs a replay has spoken of decides what is swept (sweep.c).
 */
#include "rib/tally.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rib/index.h"
#include "rib/rib_impl.h"
#include "rib/routes.h"

static uint32_t
tally_number(const struct rib *rib, uint32_t table)
{
	uint32_t i = hidx_first(&rib->tallies.by_table, hash32(table));

	while (i != 0 && rib->tallies.v[i].table != table)
		i = hidx_next(&rib->tallies.by_table, i);
	return i;
}

const struct tally *
tally_find(const struct rib *rib, uint32_t table)
{
	uint32_t i = tally_number(rib, table);

	return i == 0 ? NULL : &rib->tallies.v[i];
}

static uint32_t
tally_new(struct rib *rib, uint32_t table)
{
	uint32_t i = number_get(&rib->tallies.unused, &rib->tallies.high);

	rib->tallies.v =
		table_grow(rib->tallies.v, &rib->tallies.cap, i, sizeof(*rib->tallies.v));
	rib->tallies.v[i] = (struct tally){.table = table};
	hidx_add(&rib->tallies.by_table, hash32(table), i);
	return i;
}

/* Where routes such as `r` are counted, if they are replayed with main. */
static uint32_t *
tally_replayed_count(struct rib *rib, const struct route *r)
{
	return r->family == FAMILY_LABEL ? &rib->tallies.n_labels
					 : &rib->tallies.n_zebra[r->family == 6];
}

/* MACs are said by nobody again, and are no IP routes of any table. */
static bool
route_is_counted(const struct route *r)
{
	return r->table != FPM_TABLE_NONE;
}

static void
tally_table_said(struct rib *rib, const struct route *r, bool stale)
{
	uint32_t i = tally_number(rib, r->table);
	struct tally *t;

	if (i == 0)
		i = tally_new(rib, r->table);
	t = &rib->tallies.v[i];
	t->n += r->zslot == 0;
	t->stale -= stale;
	t->gen = rib->session.gen;
	rib->tallies.stale_other -= stale;
}

void
tally_said(struct rib *rib, struct route *r)
{
	bool stale = r->zslot != 0 && r->gen != rib->session.gen;

	r->gen = rib->session.gen;
	if (route_is_replayed(r)) {
		*tally_replayed_count(rib, r) += r->zslot == 0;
		rib->tallies.stale -= stale;
	} else if (route_is_counted(r)) {
		tally_table_said(rib, r, stale);
	}
}

static void
tally_table_gone(struct rib *rib, const struct route *r, bool stale)
{
	uint32_t i = tally_number(rib, r->table);
	struct tally *t = &rib->tallies.v[i];

	t->n--;
	t->stale -= stale;
	rib->tallies.stale_other -= stale;
	if (t->n > 0)
		return;
	hidx_del(&rib->tallies.by_table, i);
	*t = (struct tally){0};
	vec32_push(&rib->tallies.unused, i);
}

void
tally_gone(struct rib *rib, const struct route *r)
{
	bool stale = r->gen != rib->session.gen;

	if (route_is_replayed(r)) {
		--*tally_replayed_count(rib, r);
		rib->tallies.stale -= stale;
	} else if (route_is_counted(r)) {
		tally_table_gone(rib, r, stale);
	}
}

void
tally_heard(struct rib *rib, uint32_t table)
{
	uint32_t i = tally_number(rib, table);

	if (i != 0)
		rib->tallies.v[i].gen = rib->session.gen;
}

void
tallies_renew(struct rib *rib)
{
	rib->tallies.stale =
		rib->tallies.n_zebra[0] + rib->tallies.n_zebra[1] + rib->tallies.n_labels;
	rib->tallies.stale_other = 0;
	for (uint32_t i = 1; i <= rib->tallies.high; i++) {
		rib->tallies.v[i].stale = rib->tallies.v[i].n;
		rib->tallies.stale_other += rib->tallies.v[i].n;
	}
}

bool
tally_is_kept(const struct rib *rib, const struct tally *t)
{
	return t->stale > 0 && t->gen != rib->session.gen;
}

void
tally_vrf_went(struct rib *rib, uint32_t table, const char *name)
{
	uint32_t i = tally_number(rib, table);

	if (i != 0)
		snprintf(rib->tallies.v[i].went, sizeof(rib->tallies.v[i].went), "%s",
			 name);
}

void
tally_vrf_came(struct rib *rib, uint32_t table, const char *name)
{
	uint32_t i = tally_number(rib, table);
	struct tally *t;

	if (i == 0) /* nor may there be any */
		return;
	t = &rib->tallies.v[i];
	if (t->went[0] == '\0')
		return;
	if (strcmp(t->went, name) != 0) {
		t->foreign = rib->tallies.any_foreign = true;
		t->foreign_gen = rib->session.gen - rib->session.connected;
		log_info("rib: routes of a vrf that went are not those of another of its "
			 "table went=%s name=%s table=%u",
			 t->went, name, table);
	}
	t->went[0] = '\0';
}

bool
tally_is_foreign(const struct rib *rib, const struct route *r)
{
	const struct tally *t =
		rib->tallies.any_foreign && r->zslot != 0 && !route_is_replayed(r)
			? tally_find(rib, r->table)
			: NULL;

	return t != NULL && t->foreign && r->gen <= t->foreign_gen;
}

void
tallies_own(struct rib *rib)
{
	for (uint32_t i = 1; rib->tallies.any_foreign && i <= rib->tallies.high; i++)
		rib->tallies.v[i].foreign = false;
	rib->tallies.any_foreign = false;
}

void
tallies_free(struct rib *rib)
{
	free(rib->tallies.v);
	vec32_free(&rib->tallies.unused);
	hidx_free(&rib->tallies.by_table);
}
