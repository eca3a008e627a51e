/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decode messages of the kernel, leave out unwanted ones, and send the rest to rib in
 * batches. [rtnl]
 */
#include <assert.h>
#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "base/routes_from.h"
#include "base/rtproto.h"
#include "netlink/kernel_message.h"
#include "netlink/rule_message.h"
#include "rtnl/impl.h"

void
pass_flush(struct rtnl *r)
{
	size_t events = r->n_ev * sizeof(r->ev[0]);
	size_t size = offsetof(struct msg_kernel_batch, ev) + events;
	struct msg_kernel_batch *batch;

	if (r->n_ev == 0)
		return;
	batch = msg_new(MSG_KERNEL_BATCH, size);
	batch->n = r->n_ev;
	batch->bytes = (uint32_t)size + r->hops_bytes;
	memcpy(batch->ev, r->ev, events);
	r->n_ev = 0;
	r->hops_bytes = 0;
	kernel_count(&kernel_status.in, batch->bytes);
	worker_send(r->conf.rib, &batch->m);
}

/* Add one event, which owns its hops, to the batch. */
static void
pass_put(struct rtnl *r, const struct kernel_event *ev)
{
	r->ev[r->n_ev++] = *ev;
	r->hops_bytes += ev->route.n_hops * (uint32_t)sizeof(struct fpm_hop);
	if (r->n_ev == KERNEL_BATCH_MAX)
		pass_flush(r);
}

void
pass_mark(struct rtnl *r, enum kernel_event_kind kind, const struct kernel_scope *scope)
{
	pass_put(r, &(struct kernel_event){.kind = (uint8_t)kind, .dump = *scope});
}

/*
 * Handle a route that replaced another route and is not passed on: if rib has the replaced
 * route, delete it.
 */
static void
pass_replaced(struct rtnl *r, struct kernel_event *ev)
{
	if (ev->kind != KERNEL_ROUTE || ev->order != KERNEL_REPLACE)
		return;
	ev->kind = KERNEL_ROUTE_REPLACED;
	pass_put(r, ev);
}

static void
pass_count(const struct kernel_event *ev)
{
	static _Atomic uint64_t *const counter[] = {
		[KERNEL_ROUTE] = &kernel_status.routes,
		[KERNEL_ROUTE_DEL] = &kernel_status.route_dels,
		[KERNEL_NEXTHOP] = &kernel_status.nexthops,
		[KERNEL_NEXTHOP_DEL] = &kernel_status.nexthop_dels,
	};

	kernel_count(counter[ev->kind], 1);
}

/*
 * Return true if rib gets the event. A wanted route, for example a route of pbrd, may have
 * a next-hop object of zebra. From the first such route on, all next-hop objects are
 * wanted. Zebra's own routes are wanted if FPM does not have all of them: routes for some
 * packets only (source, TOS), and routes in tables of rules.
 */
static bool
event_is_wanted(const struct rtnl *r, const struct kernel_event *ev)
{
	bool nexthop = ev->kind == KERNEL_NEXTHOP || ev->kind == KERNEL_NEXTHOP_DEL;
	bool unranked = nexthop || ev->route.prefix.family == FAMILY_LABEL;
	uint32_t metric = unranked ? ZEBRA_METRIC : ev->metric;

	return routes_from_kernel(r->conf.from, ev->route.protocol, metric) ||
	       ev->src.len != 0 || (nexthop && r->all_nexthops) ||
	       (!nexthop && tables_have(r, ev->route.prefix.family, ev->route.table));
}

/* Request the next-hop objects of zebra when the first route that may need them arrives. */
static void
nexthops_want(struct rtnl *r, const struct kernel_event *ev)
{
	if (r->all_nexthops || r->conf.from != ROUTES_FROM_BOTH ||
	    ev->kind != KERNEL_ROUTE || ev->route.nhid == 0 ||
	    (ev->src.len == 0 && ev->route.protocol != RTPROT_FRR_PBR))
		return;
	r->all_nexthops = r->silent_due = true;
}

static bool
event_has_dead(const struct kernel_event *ev)
{
	for (uint32_t i = 0; i < ev->route.n_hops; i++)
		if (ev->route.hops[i].dead)
			return true;
	return false;
}

static void
pass_taken(struct rtnl *r, struct kernel_event *ev, bool dump, uint32_t expires_ms)
{
	if (!event_is_wanted(r, ev)) {
		kernel_count(&kernel_status.of_zebra, 1);
		fpm_event_clear(&ev->route);
		if (!dump)
			pass_replaced(r, ev);
		return;
	}
	if (expires_ms != 0 && ev->kind == KERNEL_ROUTE) {
		r->mortal[ev->route.protocol] = true;
		if (r->expires_ms == 0 || expires_ms < r->expires_ms)
			r->expires_ms = expires_ms;
	}
	/* The kernel sends a new route of an advertisement before it sets the lifetime. */
	if (!dump && ev->kind == KERNEL_ROUTE && ev->route.protocol == RTPROT_RA)
		r->mortal[RTPROT_RA] = r->lives_due = true;
	if (ev->kind == KERNEL_ROUTE && ev->route.prefix.family == FAMILY_LABEL)
		r->held_labels = true;
	else if (ev->kind == KERNEL_ROUTE)
		r->held[ev->route.protocol] = true;
	if (ev->kind == KERNEL_ROUTE && ev->route.prefix.family == 4)
		r->has_dead |= event_has_dead(ev);
	nexthops_want(r, ev);
	/* The kernel deletes the IPv4 routes of the object without a message. */
	if (ev->kind == KERNEL_NEXTHOP_DEL)
		r->silent_due = true;
	pass_count(ev);
	if (ev->src.len != 0)
		kernel_count(ev->src.family == 4 ? &kernel_status.by_tos
						 : &kernel_status.by_source,
			     1);
	pass_put(r, ev);
}

/*
 * Count an expired route. If it has several next hops, the kernel reports the lifetime of
 * the first next hop only, and uses all next hops while one of them has not expired.
 */
static void
pass_expired(struct rtnl *r, const struct nlmsghdr *nlh, uint8_t protocol)
{
	const struct nlattr *attr;

	kernel_count(&kernel_status.skipped, 1);
	r->mortal[protocol] = true;
	r->n_expired++;
	mnl_attr_for_each(attr, nlh, sizeof(struct rtmsg)) r->n_joined +=
		mnl_attr_get_type(attr) == RTA_MULTIPATH;
}

/*
 * When a next-hop object is replaced, the kernel sends the routes that use it with
 * NLM_F_REPLACE, although they replace no route (nexthop_replace_notify()). These messages
 * have the process and the sequence number of the object's message, which precedes them.
 */
static void
pass_unchanged(struct rtnl *r, const struct nlmsghdr *nlh, struct kernel_event *ev)
{
	if (ev->kind == KERNEL_NEXTHOP) {
		r->nexthop_pid = nlh->nlmsg_pid;
		r->nexthop_seq = nlh->nlmsg_seq;
	} else if (ev->kind == KERNEL_ROUTE && ev->order == KERNEL_REPLACE &&
		   ev->route.nhid != 0 && nlh->nlmsg_pid == r->nexthop_pid &&
		   nlh->nlmsg_seq == r->nexthop_seq) {
		ev->order = KERNEL_FIRST; /* rib has the route, and keeps its place */
	}
}

/*
 * Handle a message that was not decoded. If memory was out, rib does not get the event, so
 * read all tables. If the message is part of an answer, the answer is not complete: without
 * this mark rib would remove the route.
 */
static void
pass_failed(struct rtnl *r, const struct nlmsghdr *nlh, bool dump, int error)
{
	unsigned int missed;

	kernel_count(&kernel_status.malformed, 1);
	if (log_allowed(&r->malformed_log, &missed))
		log_warn("rtnl: message not decoded type=%u error=\"%s\" missed=%u",
			 nlh->nlmsg_type, strerror(-error), missed);
	r->interrupted |= error == -ENOMEM && dump;
	r->all_due |= error == -ENOMEM && !dump;
}

void
pass_message(struct rtnl *r, const struct nlmsghdr *nlh, bool dump)
{
	struct kernel_event ev = {0};
	uint32_t expires_ms;
	int rc = kernel_message_decode(nlh, dump, &ev, &expires_ms);

	kernel_count(&kernel_status.messages, 1);
	switch (rc) {
	case KERNEL_TAKEN:
		if (!dump)
			pass_unchanged(r, nlh, &ev);
		pass_taken(r, &ev, dump, expires_ms);
		return;
	case KERNEL_SKIP_TYPE:
		return;
	case KERNEL_SKIP:
		kernel_count(&kernel_status.skipped, 1);
		break;
	case KERNEL_SKIP_EXPIRED:
		pass_expired(r, nlh, ev.route.protocol);
		break;
	default:
		pass_failed(r, nlh, dump, rc);
		break;
	}
	fpm_event_clear(&ev.route);
}

/* --- rules ---------------------------------------------------------------------------- */

void
pass_rules_begin(struct rtnl *r, uint8_t family)
{
	r->n_rules = 0;
	rule_names_begin(r, family);
	r->no_rules = false;
}

/* Make room for `n` rules. */
static void
rules_make_room(struct rtnl *r, uint32_t n)
{
	uint32_t room = r->room_rules == 0 ? 64 : r->room_rules * 2;
	struct rule *more;

	if (n <= r->room_rules)
		return;
	more = realloc(r->rule, room * sizeof(*more));
	if (more == NULL)
		abort(); /* out of memory for some hundred octets a rule */
	r->rule = more;
	r->room_rules = room;
}

void
pass_rule(struct rtnl *r, const struct nlmsghdr *nlh)
{
	struct rule rule = {0};
	unsigned int missed;
	int rc;

	kernel_count(&kernel_status.messages, 1);
	if (nlh->nlmsg_type != RTM_NEWRULE)
		return;
	rc = rule_message_decode(nlh, &rule);
	if (rc < 0) {
		kernel_count(&kernel_status.malformed, 1);
		if (log_allowed(&r->malformed_log, &missed))
			log_warn("rtnl: rule not decoded error=\"%s\" missed=%u",
				 strerror(-rc), missed);
		return;
	}
	rule_names_dumped(r, nlh, &rule);
	rules_make_room(r, r->n_rules + 1);
	r->rule[r->n_rules++] = rule;
}

/* The rules of IPv6 of a new network namespace. */
static const struct {
	uint32_t pref, table;
} standard6[] = {{0, RT_TABLE_LOCAL}, {32766, RT_TABLE_MAIN}};

#define N_STANDARD6 (sizeof(standard6) / sizeof(standard6[0]))

/* Write a standard rule. No octet of `rule` stays undefined, because rib compares lists. */
static void
standard6_rule(struct rule *rule, unsigned int i)
{
	memset(rule, 0, sizeof(*rule));
	rule->pref = standard6[i].pref;
	rule->table = standard6[i].table;
	rule->suppress = -1;
	rule->suppress_group = RULE_NO_GROUP;
	rule->family = rule->src.family = rule->dst.family = 6;
	rule->action = FR_ACT_TO_TBL;
	rule->protocol = RTPROT_KERNEL;
}

static bool
rule_is_standard6(const struct rule *rule)
{
	struct rule standard;

	for (unsigned int i = 0; i < N_STANDARD6; i++) {
		standard6_rule(&standard, i);
		if (memcmp(rule, &standard, sizeof(standard)) == 0)
			return true;
	}
	return false;
}

/* Return true if the list has a rule that looks up the table. */
static bool
rules_look_up(const struct rtnl *r, uint32_t table)
{
	for (uint32_t i = 0; i < r->n_rules; i++)
		if (r->rule[i].action == FR_ACT_TO_TBL && r->rule[i].table == table)
			return true;
	return false;
}

/*
 * Return true if Linux looks up tables local and main, although the rule of IPv6 for one of
 * them was deleted: no rule of IPv6 was added yet in the network namespace.
 */
static bool
rules6_are_ignored(const struct rtnl *r)
{
	for (uint32_t i = 0; i < r->n_rules; i++)
		if (!rule_is_standard6(&r->rule[i]))
			return false;
	return (r->local6 && !rules_look_up(r, RT_TABLE_LOCAL)) ||
	       (r->main6 && !rules_look_up(r, RT_TABLE_MAIN));
}

void
pass_rules_end(struct rtnl *r, uint8_t family)
{
	struct msg_rules *m;
	size_t bytes;

	if (family == 6 && rules6_are_ignored(r)) {
		rules_make_room(r, N_STANDARD6);
		for (r->n_rules = 0; r->n_rules < N_STANDARD6; r->n_rules++)
			standard6_rule(&r->rule[r->n_rules], r->n_rules);
	}
	rule_names_end(r, family);
	tables_update(r, family);
	if (r->no_rules)
		return;
	bytes = r->n_rules * sizeof(*r->rule);
	m = msg_new(MSG_RULES, sizeof(*m) + bytes);
	pass_flush(r); /* first send rib the routes that were read before */
	m->family = family;
	m->split = family == 4 && r->split4;
	m->n = r->n_rules;
	if (bytes > 0)
		memcpy(m->rule, r->rule, bytes);
	worker_send(r->conf.rib, &m->m);
}
