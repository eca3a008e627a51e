/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compile the rules of the kernel for forwarders. [rib]
 *
 * Forwarders follow the rules that every kernel has (local, main, default with an empty
 * table, the rule of VRFs) without a list. If there are no other rules, nothing is
 * published and no interface is affected. Otherwise each table that a rule names gets a
 * FIB. The list is published as a whole when all these FIBs are complete. neigh then learns
 * which interfaces are affected. When rules are removed, their FIBs stay until no reader
 * has the old list.
 */
#include "rib/rules.h"

#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/log.h"
#include "fib/rules.h"
#include "rib/content.h"
#include "rib/index.h"
#include "rib/kernel.h"
#include "rib/link.h"
#include "rib/local.h"
#include "rib/reclaim.h"
#include "rib/impl.h"
#include "rib/routes.h"
#include "rib/slot.h"
#include "rib/source.h"
#include "rib/view.h"
#include "rib/vrf.h"

#define RETRY_MS 1000u

/* --- what a rule is ------------------------------------------------------------------- */

/* Return true if table default has a route of the family. It is mostly empty. */
static bool
default_is_used(const struct rib *rib, unsigned int family6)
{
	if (rib->tables.n_default[family6] > 0)
		return true;
	for (uint32_t at = 0; at < rib->sources.n; at++)
		if (rib->sources.v[at].table == RT_TABLE_DEFAULT &&
		    rib->sources.v[at].n > 0 &&
		    (rib->sources.v[at].src.family == 6) == family6)
			return true;
	return false;
}

/* Return true for a rule that does nothing to any packet. */
static bool
rule_is_idle(const struct rib *rib, const struct rule *rule)
{
	return (rule_is_never(rule) && !rule->invert) || rule->action == FR_ACT_NOP ||
	       (rule->action == FR_ACT_TO_TBL && !rule->l3mdev &&
		rule->table == RT_TABLE_DEFAULT &&
		!default_is_used(rib, rule->family == 6));
}

/*
 * Return true for a rule that all packets match and that looks up a table, or the VRF's
 * table.
 */
static bool
rule_is_for_all(const struct rule *rule)
{
	return rule->action == FR_ACT_TO_TBL && !rule->invert && !rule_is_never(rule) &&
	       rule->suppress < 0 && rule->suppress_group == RULE_NO_GROUP &&
	       rule->src.len == 0 && rule->dst.len == 0 && rule->tos_mask == 0 &&
	       rule->ip_proto == 0 && rule->sport.last == 0 && rule->dport.last == 0 &&
	       rule->label.mask == 0 && rule->iif[0] == '\0';
}

/*
 * Return true if the rule needs the FIB of a table other than local and main, or a view of
 * a table for suppress_prefixlength.
 */
static bool
rule_needs_fib(const struct rib *rib, const struct rule *rule)
{
	return rule->action == FR_ACT_TO_TBL && !rule_is_idle(rib, rule) && !rule->l3mdev &&
	       (rule->lacks & RULE_LACKS_TABLE) == 0 && rule->table != RT_TABLE_LOCAL &&
	       rule->table != RT_TABLE_UNSPEC &&
	       (rule->table != RT_TABLE_MAIN || rule->suppress >= 0);
}

/*
 * Return true if source-specific routes, or IPv4 routes of one TOS, are in a table that
 * packets look up.
 */
static bool
sources_are_used(const struct rib *rib, unsigned int family6)
{
	for (uint32_t at = 0; at < rib->sources.n; at++) {
		const struct source *s = &rib->sources.v[at];
		const struct vrf *vrf = vrf_find(rib, s->table);

		if (s->n > 0 && (s->src.family == 6) == family6 &&
		    (s->table == RIB_TABLE_MAIN || (vrf != NULL && !vrf_is_for_rules(vrf))))
			return true;
	}
	return false;
}

static bool
vrfs_exist(const struct rib *rib)
{
	return rib->vrfs.n > rib->vrfs.n_for_rules;
}

/*
 * Return true for a rule without a selector that looks up the table of a VRF or table main.
 * Set *has_main if it looks up table main. Set *vrfs_done if it looks up the tables of
 * VRFs, and no earlier rule looks up table main.
 */
static bool
rule_is_base(const struct rule *rule, bool *has_main, bool *vrfs_done)
{
	if (!rule_is_for_all(rule) || (!rule->l3mdev && rule->table != RT_TABLE_MAIN))
		return false;
	*vrfs_done |= rule->l3mdev && !*has_main;
	*has_main |= !rule->l3mdev;
	return true;
}

/*
 * Forwarders without a list look up the table of a packet's VRF, then main. This needs a
 * rule of VRFs (l3mdev) before the rule of main. Linux adds the rule of VRFs with the first
 * VRF; `ip rule flush` removes it.
 */
bool
rules_are_default(const struct rib *rib, unsigned int family6)
{
	const struct rule_list *list = &rib->rules.list[family6];
	bool has_main = false, vrfs_done = !vrfs_exist(rib);

	if (!list->known)
		return true;
	if (sources_are_used(rib, family6))
		return false;
	for (uint32_t i = 0; i < list->n; i++) {
		const struct rule *rule = &list->v[i];

		if (rule_is_idle(rib, rule))
			continue;
		if (!rule_is_for_all(rule))
			return false;
		if ((rule->l3mdev || rule->table != RT_TABLE_LOCAL) &&
		    !rule_is_base(rule, &has_main, &vrfs_done))
			return false;
	}
	return has_main && vrfs_done;
}

/* --- FIBs ----------------------------------------------------------------------------- */

static bool
view_is(const struct vrf *at, uint32_t table, uint8_t view, int32_t longer_than,
	const struct prefix *src, bool hides)
{
	return at->view == view && at->fib->table == table &&
	       at->longer_than == longer_than && at->hides == hides &&
	       prefix_equal(&at->src, src);
}

/* Return the FIB of a table, or a view of it; NULL: it does not exist. */
static struct vrf *
fib_of_table(const struct rib *rib, uint32_t table, uint8_t view, int32_t longer_than,
	     const struct prefix *src, bool hides)
{
	if (view == 0)
		return vrf_find(rib, table);
	for (uint32_t i = 0; i < rib->vrfs.views.n; i++) {
		struct vrf *at = rib->vrfs.v[rib->vrfs.views.v[i]];

		if (view_is(at, table, view, longer_than, src, hides))
			return at;
	}
	return NULL;
}

/*
 * Handle a FIB that could not be created. Without memory the last list stays. If all
 * numbers are in use, rules that have no FIB are not obeyed; all other rules are obeyed.
 */
static void
fib_refused(struct rib *rib, uint32_t table)
{
	bool full = rib->vrfs.n_for_rules == FIB_RULE_TABLES;

	rib->rules.retry_ms = rib->clock_ms() + RETRY_MS;
	rib->rules.nomem |= !full;
	if (!rib->rules.refused && full)
		table_refuse(TABLE_rule_fibs);
	else if (!rib->rules.refused)
		log_error(
			"rib: rule table not created table=%u reason=no-memory retry_ms=%u",
			table, RETRY_MS);
	rib->rules.refused = true;
}

/* Mark a FIB or a view as wanted by rules, and create it if it does not exist. */
static void
fib_want(struct rib *rib, uint32_t table, uint8_t view, int32_t longer_than,
	 const struct prefix *src, bool hides)
{
	struct vrf *vrf = fib_of_table(rib, table, view, longer_than, src, hides);
	bool created = vrf == NULL;

	if (created)
		vrf = vrf_for_rules(rib, table, view);
	if (vrf == NULL) {
		fib_refused(rib, table);
		return;
	}
	if (longer_than >= 0)
		slot_make_suppressed(rib);
	if (created && view != 0) {
		vrf->longer_than = longer_than;
		vrf->src = *src;
		vrf->hides = hides;
	}
	vrf->wanted = true;
}

static const struct prefix any_source = {.family = 6}; /* for IPv4 views, too */

/*
 * Create a view for packets from a source, and a view for packets from other sources; or a
 * view for packets of a TOS.
 */
static void
source_want(struct rib *rib, const struct source *s, int32_t longer_than)
{
	fib_want(rib, s->table, s->src.family, longer_than, &s->src, true);
	if (s->src.family == 6)
		fib_want(rib, s->table, 6, longer_than, &any_source, true);
}

/*
 * Create the views that replace each FIB whose table has source-specific routes, or IPv4
 * routes of one TOS.
 */
static void
sources_want(struct rib *rib, unsigned int family6)
{
	uint32_t n_views = rib->vrfs.views.n;

	for (uint32_t at = 0; at < rib->sources.n; at++) {
		const struct source s = rib->sources.v[at];

		if (s.n == 0 || (s.src.family == 6) != family6)
			continue;
		if (s.table == RIB_TABLE_MAIN || vrf_find(rib, s.table) != NULL)
			source_want(rib, &s, -1);
		for (uint32_t i = 0; i < n_views; i++) {
			const struct vrf *view = rib->vrfs.v[rib->vrfs.views.v[i]];

			if (view->wanted && view->view == s.src.family && !view->hides &&
			    view->fib->table == s.table)
				source_want(rib, &s, view->longer_than);
		}
	}
}

static void
list_want(struct rib *rib, unsigned int family6)
{
	const struct rule_list *list = &rib->rules.list[family6];

	for (uint32_t i = 0; i < list->n; i++) {
		const struct rule *rule = &list->v[i];

		if (!rule_needs_fib(rib, rule))
			continue;
		if (rule->table != RIB_TABLE_MAIN)
			fib_want(rib, rule->table, 0, -1, NULL, false);
		if (rule->suppress >= 0)
			fib_want(rib, rule->table, rule->family, rule->suppress,
				 &any_source, false);
	}
}

/* Remove the FIBs that neither the rules nor a list of readers uses. */
static void
rules_drop_unused(struct rib *rib)
{
	for (uint32_t i = FIB_VRF_MAX; rib->vrfs.n_for_rules > 0 && i < FIB_NUMBERS; i++) {
		struct vrf *vrf = rib->vrfs.v[i];

		if (vrf != NULL && !vrf->wanted && !vrf->listed_now && !vrf->in_use)
			vrf_end(rib, vrf);
	}
}

/*
 * Return true if packets of VRFs may look up the table of their VRF before table local, or
 * never look up table local. A published list has its own place for the lookup of table
 * local.
 */
static bool
local_is_behind(const struct rib *rib, const struct rule_list *list)
{
	for (uint32_t i = 0; i < list->n; i++) {
		const struct rule *rule = &list->v[i];

		if (rule->action == FR_ACT_GOTO || rule->l3mdev ||
		    (rule->action == FR_ACT_TO_TBL && table_is_of_vrf(rib, rule->table)))
			return true;
		if (rule_is_for_all(rule) && rule->table == RT_TABLE_LOCAL)
			return false;
	}
	return list->n > 0;
}

void
rules_round(struct rib *rib)
{
	struct rib_rules *r = &rib->rules;

	for (unsigned int v = 0; v < 2; v++) {
		bool used = default_is_used(rib, v);

		r->due |= used != r->default_used[v];
		r->default_used[v] = used;
	}
	r->due |= vrfs_exist(rib) != r->vrfs_exist;
	r->vrfs_exist = vrfs_exist(rib);
	r->due |= rib->sources.changed;
	rib->sources.changed = false;
	if (!r->due && (r->retry_ms == 0 || rib->clock_ms() < r->retry_ms))
		return;
	r->due = r->nomem = false;
	r->retry_ms = 0;
	for (unsigned int v = 0; v < 2; v++)
		locals_set_behind(rib, v, local_is_behind(rib, &r->list[v]));
	for (uint32_t i = 1; rib->vrfs.n > 0 && i < FIB_NUMBERS; i++)
		if (rib->vrfs.v[i] != NULL)
			rib->vrfs.v[i]->wanted = false;
	for (unsigned int v = 0; v < 2; v++)
		if (!rules_are_default(rib, v))
			list_want(rib, v);
	for (unsigned int v = 0; v < 2; v++)
		if (!rules_are_default(rib, v))
			sources_want(rib, v);
	for (uint32_t i = 0; i < rib->vrfs.views.n; i++) {
		struct vrf *view = rib->vrfs.v[rib->vrfs.views.v[i]];

		if (view_set_chain(rib, view))
			view->lap = resync_from(&rib->resync, 1);
	}
	sources_collect(&rib->sources);
	r->refused &= r->retry_ms != 0;
	r->publish_due = !r->nomem;
}

/* --- compiled lists ------------------------------------------------------------------- */

/*
 * Return the number of the FIB of a table (0: main). If `longer_than` is not -1, return the
 * number of the view without prefixes up to this length. Return -1 if the FIB or the view
 * does not exist.
 */
static int32_t
fib_number(const struct rib *rib, uint32_t table, uint8_t family, int32_t longer_than)
{
	const struct vrf *vrf;

	if (longer_than < 0 && table == RIB_TABLE_MAIN)
		return 0;
	vrf = fib_of_table(rib, table, longer_than < 0 ? 0 : family, longer_than,
			   &any_source, false);
	return vrf == NULL ? -1 : vrf->number;
}

bool
rule_lacks_fib(const struct rib *rib, const struct rule *rule)
{
	return rib->rules.refused && rule_needs_fib(rib, rule) &&
	       fib_number(rib, rule->table, rule->family, rule->suppress) < 0;
}

static const struct link *
link_named(const struct rib *rib, const char *name)
{
	for (uint32_t i = 1; i <= rib->links.high; i++)
		if (rib->links.v[i] != NULL && rib->links.v[i]->known &&
		    strcmp(rib->links.v[i]->name, name) == 0)
			return rib->links.v[i];
	return NULL;
}

/* Return the interface of a rule; NULL: the rule has none, or it does not exist. */
static const struct link *
rule_link(const struct rib *rib, const char *name, uint32_t ifindex)
{
	const struct link *link;

	if (name[0] == '\0')
		return NULL;
	if (ifindex == 0)
		return link_named(rib, name);
	link = rib_link_find(&rib->links, ifindex);
	return link != NULL && link->known ? link : NULL;
}

const struct link *
rule_iif(const struct rib *rib, const struct rule *rule)
{
	return (rule->lacks & RULE_LACKS_IIF) != 0
		       ? NULL
		       : rule_link(rib, rule->iif, rule->iif_index);
}

bool
rule_oif_is_absent(const struct rib *rib, const struct rule *rule)
{
	return rule->oif[0] != '\0' && rule_link(rib, rule->oif, rule->oif_index) == NULL;
}

static void
compile_action(const struct rib *rib, struct fib_rule *to, const struct rule *rule)
{
	static const uint8_t path[] = {[FR_ACT_BLACKHOLE] = PATH_BLACKHOLE,
				       /* Linux sends the ICMP error of a missing route. */
				       [FR_ACT_UNREACHABLE] = PATH_NONE,
				       [FR_ACT_PROHIBIT] = PATH_PROHIBIT};

	to->action = FIB_RULE_NOP;
	switch (rule->action) {
	case FR_ACT_TO_TBL:
		if (rule->l3mdev) {
			to->action = FIB_RULE_VRF;
		} else if (rule->table == RT_TABLE_LOCAL) {
			to->action = FIB_RULE_LOCAL;
		} else if (rule->table != RT_TABLE_UNSPEC) {
			int32_t number =
				fib_number(rib, rule->table, rule->family, rule->suppress);

			if (number < 0)
				break; /* the table is full */
			to->action = FIB_RULE_TABLE;
			to->number = (uint16_t)number;
		}
		break;
	case FR_ACT_BLACKHOLE:
	case FR_ACT_UNREACHABLE:
	case FR_ACT_PROHIBIT:
		to->action = FIB_RULE_PATH;
		to->path = path[rule->action];
		break;
	default:
		break;
	}
}

static void
compile_rule(const struct rib *rib, struct fib_rule *to, const struct rule *rule)
{
	const struct link *iif;

	to->pref = rule->pref;
	to->table = rule->table;
	to->invert = rule->invert;
	to->never = rule_is_never(rule);
	to->tos = rule->tos;
	to->tos_mask = rule->tos_mask;
	to->label = rule->label;
	to->ip_proto = rule->ip_proto;
	to->suppress_group = rule->suppress_group;
	to->sport = rule->sport;
	to->dport = rule->dport;
	to->src = rule->src;
	to->dst = rule->dst;
	if (rule->iif[0] != '\0') {
		iif = rule_iif(rib, rule);
		to->ifindex = iif == NULL ? UINT32_MAX : iif->ifindex;
	}
	compile_action(rib, to, rule);
}

/* Resolve the targets of goto. place[i] is the index in to->rule of rule i of the list. */
static void
compile_gotos(struct fib_rules *to, const struct rule_list *list, const uint32_t *place)
{
	for (uint32_t i = 0; i < list->n; i++) {
		const struct rule *rule = &list->v[i];

		if (rule->action != FR_ACT_GOTO || place[i] == place[i + 1])
			continue;
		for (uint32_t j = i + 1; j < list->n; j++)
			if (list->v[j].pref == rule->target) {
				to->rule[place[i]].action = FIB_RULE_GOTO;
				to->rule[place[i]].next = (uint16_t)place[j];
				break;
			}
	}
}

/* Return true for a view that replaces another FIB, whose number is then in *base. */
static bool
view_of_source(const struct rib *rib, const struct vrf *view, uint16_t *base)
{
	int32_t number;

	if (!view->wanted || !view->hides)
		return false;
	number = fib_number(rib, view->fib->table, view->view, view->longer_than);
	*base = (uint16_t)number;
	return number >= 0;
}

static void
compile_sources(const struct rib *rib, unsigned int family6, struct fib_rules *to,
		struct fib_rules_source *source)
{
	to->source = source;
	for (uint32_t i = 0; i < rib->vrfs.views.n; i++) {
		const struct vrf *view = rib->vrfs.v[rib->vrfs.views.v[i]];
		uint32_t at = to->n_sources;
		uint16_t base;

		if ((view->view == 6) != family6 || !view_of_source(rib, view, &base))
			continue;
		for (; at > 0 && source[at - 1].src.len < view->src.len; at--)
			source[at] = source[at - 1];
		source[at] = (struct fib_rules_source){
			.base = base, .number = view->number, .src = view->src};
		to->n_sources++;
	}
}

/* Return the list for forwarders, or NULL if forwarders need none. */
static struct fib_rules *
rules_compile(const struct rib *rib, unsigned int family6)
{
	const struct rule_list *list = &rib->rules.list[family6];
	uint32_t n_sources = rib->vrfs.views.n, *place;
	struct fib_rules *to;

	if (rules_are_default(rib, family6))
		return NULL;
	place = mem_or_abort(calloc(list->n + 1, sizeof(*place)));
	to = mem_or_abort(calloc(1, sizeof(*to) + list->n * sizeof(to->rule[0]) +
					    n_sources * sizeof(*to->source)));
	for (uint32_t i = 0; i < list->n && to->n < UINT16_MAX; i++) {
		place[i] = to->n;
		if (!rule_is_idle(rib, &list->v[i]))
			compile_rule(rib, &to->rule[to->n++], &list->v[i]);
		place[i + 1] = to->n;
	}
	compile_gotos(to, list, place);
	compile_sources(rib, family6, to,
			(struct fib_rules_source *)(void *)&to->rule[list->n]);
	free(place);
	return to;
}

static bool
rules_are_equal(const struct fib_rules *a, const struct fib_rules *b)
{
	if (a == NULL || b == NULL)
		return a == b;
	return a->n == b->n && a->n_sources == b->n_sources &&
	       memcmp(a->rule, b->rule, a->n * sizeof(a->rule[0])) == 0 &&
	       (a->n_sources == 0 ||
		memcmp(a->source, b->source, a->n_sources * sizeof(*a->source)) == 0);
}

/* --- interfaces ----------------------------------------------------------------------- */

static void
ifaces_add(struct rule_ifaces *to, uint32_t ifindex)
{
	for (uint32_t i = 0; i < to->n; i++)
		if (to->ifindex[i] == ifindex)
			return;
	if (to->n == RULE_IFACES_MAX)
		to->all = true;
	else
		to->ifindex[to->n++] = ifindex;
}

/*
 * Find the interfaces whose packets some rule may treat differently from the rules that
 * every kernel has.
 */
static void
ifaces_of_list(const struct rib *rib, unsigned int family6, struct rule_ifaces *to)
{
	const struct rule_list *list = &rib->rules.list[family6];
	bool has_main = false, vrfs_done = !vrfs_exist(rib);

	if (rules_are_default(rib, family6))
		return;
	to->all = sources_are_used(rib, family6);
	for (uint32_t i = 0; i < list->n && !to->all; i++) {
		const struct rule *rule = &list->v[i];
		const struct link *iif;

		if (rule_is_idle(rib, rule))
			continue;
		if (rule_is_for_all(rule) && !rule->l3mdev && rule->table == RT_TABLE_LOCAL)
			continue;
		if (rule_is_base(rule, &has_main, &vrfs_done))
			continue;
		iif = rule_iif(rib, rule);
		to->all = rule->invert || rule->iif[0] == '\0' ||
			  (iif != NULL && iif->vrf != 0);
		if (iif != NULL && !to->all)
			ifaces_add(to, iif->ifindex);
	}
	to->all |= !has_main || !vrfs_done;
}

static void
ifaces_tell(struct rib *rib)
{
	struct msg_rule_ifaces *m = msg_new(MSG_RULE_IFACES, sizeof(*m));

	for (unsigned int v = 0; v < 2; v++)
		ifaces_of_list(rib, v, &m->of[v]);
	if (memcmp(m->of, rib->rules.told, sizeof(m->of)) == 0 || rib->stopping) {
		msg_free(&m->m);
		return;
	}
	memcpy(rib->rules.told, m->of, sizeof(m->of));
	worker_send(rib->conf.neigh, &m->m);
}

/* --- publication ---------------------------------------------------------------------- */

/* Return true if all FIBs that rules name are complete, including FIBs of VRFs. */
static bool
fibs_are_complete(const struct rib *rib)
{
	for (uint32_t i = 1; rib->vrfs.n > 0 && i < FIB_NUMBERS; i++) {
		const struct vrf *vrf = rib->vrfs.v[i];

		if (vrf != NULL && vrf->wanted &&
		    (!vrf->published || !resync_has_passed(&rib->resync, vrf->lap)))
			return false;
	}
	return true;
}

static void
rules_store(struct rib *rib, unsigned int family6, struct fib_rules *now)
{
	struct fib_rules *old = rib->rules.published[family6];

	/* Release: a reader that finds the list sees its rules and their FIBs. */
	atomic_store_explicit(&rib->fib->rules[family6], now, memory_order_release);
	rib->rules.published[family6] = now;
	rib->rules.n_published++;
	reclaim_open(rib)->rules[family6] = old;
	reclaim_open(rib)->rules_round = rib->rules.n_rounds;
}

/* Note whether the lists of this round name the FIB, by its number or its former number. */
static void
vrf_set_listed(struct vrf *vrf, uint64_t round)
{
	if (vrf->listed_now && !vrf->wanted)
		vrf->left = round;
	if (vrf->former_listed)
		vrf->former_left = round;
	vrf->listed_now = vrf->wanted;
	vrf->in_use |= vrf->wanted;
	vrf->former_listed = false;
}

void
rules_publish(struct rib *rib)
{
	bool unlisted = false; /* some FIB waits only for readers of older lists */

	/* If the rules are due again, it is not known which FIBs they name. */
	if (!rib->rules.publish_due || rib->rules.due || !fibs_are_complete(rib))
		return;
	rib->rules.publish_due = false;
	rib->rules.n_rounds++;
	for (unsigned int v = 0; v < 2; v++) {
		struct fib_rules *now = rules_compile(rib, v);

		if (rules_are_equal(now, rib->rules.published[v]))
			free(now);
		else
			rules_store(rib, v, now);
	}
	for (uint32_t i = FIB_VRF_MAX; rib->vrfs.n_for_rules > 0 && i < FIB_NUMBERS; i++)
		if (rib->vrfs.v[i] != NULL) {
			vrf_set_listed(rib->vrfs.v[i], rib->rules.n_rounds);
			unlisted |= rib->vrfs.v[i]->in_use && !rib->vrfs.v[i]->listed_now;
		}
	if (unlisted)
		reclaim_open(rib)->rules_round = rib->rules.n_rounds;
	rules_drop_unused(rib);
	ifaces_tell(rib);
}

void
rules_reclaim(struct rib *rib, uint64_t round)
{
	for (uint32_t i = FIB_VRF_MAX; rib->vrfs.n_for_rules > 0 && i < FIB_NUMBERS; i++) {
		struct vrf *vrf = rib->vrfs.v[i];

		if (vrf == NULL)
			continue;
		vrf->in_use &= vrf->listed_now || vrf->left > round;
		if (!vrf->former_listed && vrf->former_left <= round)
			vrf_drop_former(rib, vrf);
	}
	rules_drop_unused(rib);
}

/* Return true if the published list of a family names the FIB. */
static bool
list_names(const struct fib_rules *list, uint16_t number)
{
	bool names = false;

	for (uint32_t i = 0; list != NULL && i < list->n; i++)
		names |= list->rule[i].action == FIB_RULE_TABLE &&
			 list->rule[i].number == number;
	return names;
}

void
rules_keep_fib(struct rib *rib, uint16_t number)
{
	struct vrf *vrf = rib->vrfs.v[number];

	if (vrf == NULL || !vrf->published ||
	    (!list_names(rib->rules.published[0], number) &&
	     !list_names(rib->rules.published[1], number)) ||
	    !vrf_give_to_rules(rib, vrf))
		return;
	/* Remove the prefixes of table local, which only FIBs of VRFs have. */
	if (!local_fill(rib, vrf)) {
		vrf_end(rib, vrf);
		return;
	}
	/* Table local no longer hides routes of this table: compare its routes again. */
	if (rib->kroutes.wide.n > 0)
		(void)resync_from(&rib->resync, rib->tables.main.high + 1);
}

/* --- lists of the kernel -------------------------------------------------------------- */

const char *
rule_lacks(const struct rule *rule)
{
	static const struct {
		uint8_t bit;
		const char *name;
	} lack[] = {
		{RULE_LACKS_MARK, "fwmark"},
		{RULE_LACKS_UID, "uidrange"},
		{RULE_LACKS_TUNNEL, "tun_id"},
		{RULE_LACKS_IFGROUP, "suppress_ifgroup"},
		{RULE_LACKS_SUPPRESS, "suppress_prefixlength"},
		{RULE_LACKS_TABLE, "lookup"},
		{RULE_LACKS_IIF, "iif"},
		{RULE_LACKS_UNKNOWN, "unknown"},
	};

	for (unsigned int i = 0; i < sizeof(lack) / sizeof(lack[0]); i++)
		if ((rule->lacks & lack[i].bit) != 0)
			return lack[i].name;
	return NULL;
}

/* Log the rules that forwarders cannot obey, once when they appear. */
static void
list_log_lacking(const struct rule_list *old, const struct msg_rules *m)
{
	for (uint32_t i = 0; i < m->n; i++) {
		const struct rule *rule = &m->rule[i];
		bool known = false;

		for (uint32_t j = 0; j < old->n && rule->lacks != 0; j++)
			known |= old->v[j].pref == rule->pref &&
				 old->v[j].lacks == rule->lacks;
		if (rule->lacks != 0 && !known)
			log_warn("rib: rule not obeyed family=%s pref=%u selector=%s",
				 rule->family == 4 ? "ipv4" : "ipv6", rule->pref,
				 rule_lacks(rule));
	}
}

/* Return true for one of the three rules that a new kernel has. */
static bool
rule_is_first(const struct rule *rule)
{
	static const struct {
		uint32_t pref, table;
	} first[] = {
		{0, RT_TABLE_LOCAL}, {32766, RT_TABLE_MAIN}, {32767, RT_TABLE_DEFAULT}};

	for (unsigned int i = 0; i < sizeof(first) / sizeof(first[0]); i++)
		if (rule->pref == first[i].pref && rule->table == first[i].table &&
		    !rule->l3mdev && rule_is_for_all(rule))
			return true;
	return false;
}

static bool
list_is_first(const struct msg_rules *m)
{
	for (uint32_t i = 0; i < m->n; i++)
		if (!rule_is_first(&m->rule[i]))
			return false;
	return m->n == 3;
}

void
rules_event(struct rib *rib, const struct msg_rules *m)
{
	struct rule_list *list = &rib->rules.list[m->family == 6];
	size_t bytes = m->n * sizeof(m->rule[0]);

	if (m->split)
		kernel_split_tables(rib);
	if (list->known && list->n == m->n &&
	    (m->n == 0 || memcmp(list->v, m->rule, bytes) == 0))
		return;
	list_log_lacking(list, m);
	if (m->family == 4 && !list_is_first(m))
		kernel_split_tables(rib);
	free(list->v);
	list->v = mem_or_abort(malloc(bytes + 1));
	memcpy(list->v, m->rule, bytes);
	list->n = m->n;
	list->known = true;
	rib->rules.due = true;
}

void
rules_free(struct rib *rib)
{
	free(rib->rules.list[0].v);
	free(rib->rules.list[1].v);
	for (unsigned int v = 0; v < 2; v++) {
		if (rib->rules.published[v] != NULL)
			atomic_store_explicit(&rib->fib->rules[v], NULL,
					      memory_order_relaxed);
		free(rib->rules.published[v]);
	}
	sources_free(&rib->sources);
	locals_free(rib);
}
