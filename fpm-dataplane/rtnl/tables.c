/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tables that rules name. [rtnl]
 *
 * zebra replays main and the tables of VRFs over FPM, and no other table. After a start of
 * the daemon, a route that zebra has in the table of a rule is therefore known to the
 * kernel alone. While rules name tables, zebra's routes in them are taken from the kernel,
 * with zebra's next-hop objects. Each table that is added to or removed from the rules is
 * read once, so that rib has all its routes, or none of zebra's.
 */
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "base/rule.h"
#include "rtnl/impl.h"

#define TABLES_ALONE 16u

static int
table_compare(const void *a, const void *b)
{
	const uint32_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

/*
 * Return true if packets may be looked up in the rule's table, and zebra may have routes in
 * it that FPM does not replay. Table default is left out: every kernel has a rule for it,
 * and FRR does not use it.
 */
static bool
rule_names_table(const struct rule *rule)
{
	return rule->action == FR_ACT_TO_TBL && !rule->l3mdev &&
	       (!rule_is_never(rule) || rule->invert) && rule->table != RT_TABLE_UNSPEC &&
	       rule->table != RT_TABLE_DEFAULT && rule->table != RT_TABLE_MAIN &&
	       rule->table != RT_TABLE_LOCAL;
}

/* Collect the tables of the rules in r->rule, in ascending order, each once. */
static struct rule_tables
tables_of_rules(const struct rtnl *r)
{
	struct rule_tables of = {.v = malloc((r->n_rules + 1) * sizeof(*of.v))};
	uint32_t n = 0;

	if (of.v == NULL)
		abort(); /* out of memory for four octets a rule */
	for (uint32_t i = 0; i < r->n_rules; i++)
		if (rule_names_table(&r->rule[i]))
			of.v[of.n++] = r->rule[i].table;
	qsort(of.v, of.n, sizeof(*of.v), table_compare);
	for (uint32_t i = 0; i < of.n; i++)
		if (n == 0 || of.v[i] != of.v[n - 1])
			of.v[n++] = of.v[i];
	of.n = n;
	return of;
}

static bool
table_is_in(const struct rule_tables *of, uint32_t table)
{
	return of->n > 0 &&
	       bsearch(&table, of->v, of->n, sizeof(*of->v), table_compare) != NULL;
}

bool
tables_have(const struct rtnl *r, uint8_t family, uint32_t table)
{
	return table_is_in(&r->tables[family == 6], table);
}

/*
 * Plan a dump of each table that is in `a` and not in `b`. rib walks over all routes of the
 * kernel after each dump, so for many tables plan one dump of all routes instead.
 */
static void
tables_dump(struct rtnl *r, uint8_t family, const struct rule_tables *a,
	    const struct rule_tables *b)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < a->n; i++)
		n += !table_is_in(b, a->v[i]);
	if (n > TABLES_ALONE) {
		r->all_due = true;
		return;
	}
	for (uint32_t i = 0; i < a->n; i++)
		if (!table_is_in(b, a->v[i]))
			dump_add_table(r, family, a->v[i]);
}

static bool
tables_are_equal(const struct rule_tables *a, const struct rule_tables *b)
{
	return a->n == b->n && (a->n == 0 || memcmp(a->v, b->v, a->n * sizeof(*a->v)) == 0);
}

void
tables_update(struct rtnl *r, uint8_t family)
{
	struct rule_tables was = r->tables[family == 6], is = tables_of_rules(r);

	if (r->conf.from != ROUTES_FROM_BOTH)
		is.n = 0; /* the selection by protocol suffices */
	r->tables[family == 6] = is;
	if (!tables_are_equal(&is, &was)) {
		events_filter(r, r->tables[0].n + r->tables[1].n > 0);
		r->all_nexthops |= is.n > 0;
		/* At the start all routes are read anyway, or the checkpoint has them. */
		if (!r->whole && !r->starting) {
			/* Next hops first, so that the routes that follow have theirs. */
			dump_add_nexthops(r);
			tables_dump(r, family, &is, &was);
			tables_dump(r, family, &was, &is);
		}
	}
	free(was.v);
}

void
tables_free(struct rtnl *r)
{
	for (unsigned int v = 0; v < 2; v++) {
		free(r->tables[v].v);
		r->tables[v] = (struct rule_tables){0};
	}
}
