/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans of dumps: lists of jobs, which dump.c does one after the other. [rtnl] */
#include <linux/rtnetlink.h>

#include "base/clock.h"
#include "rtnl/impl.h"

static void
job_add(struct rtnl *r, enum dump_kind kind, uint8_t family, uint8_t protocol)
{
	r->job[r->n_jobs++] = (struct dump_job){
		.kind = kind, .scope = {.family = family, .protocol = protocol}};
}

/* Add a dump of labels, which is skipped if the kernel has no MPLS. */
static void
job_add_labels(struct rtnl *r)
{
	job_add(r, DUMP_HAS_LABELS, FAMILY_LABEL, 0);
	job_add(r, DUMP_ROUTES, FAMILY_LABEL, 0);
}

void
dump_add_nexthops(struct rtnl *r)
{
	if (r->n_jobs == JOBS_MAX)
		r->all_due = true;
	else
		job_add(r, DUMP_NEXTHOPS, 0, 0);
}

void
dump_add_table(struct rtnl *r, uint8_t family, uint32_t table)
{
	if (r->n_jobs == JOBS_MAX) {
		r->all_due = true;
		return;
	}
	r->job[r->n_jobs++] = (struct dump_job){
		.kind = DUMP_ROUTES, .scope = {.family = family, .table = table}};
}

static void
jobs_begin(struct rtnl *r)
{
	r->n_jobs = r->at = r->tries = 0;
	r->n_answers = 0;
	r->asked = r->checking = r->many_deleted = false;
	r->expires_ms = 0;
	r->n_expired = r->n_joined = 0;
	r->n_shown = 0;
	r->dump_begin_ms = monotonic_ms();
	r->rules_only = r->rules_due = r->whole = false;
	job_add(r, DUMP_SPLIT, 4, 0);
	job_add(r, DUMP_RULES, 4, 0);
	job_add(r, DUMP_LOCAL6, 6, 0);
	job_add(r, DUMP_MAIN6, 6, 0);
	job_add(r, DUMP_RULES, 6, 0);
}

void
dump_plan_rules(struct rtnl *r)
{
	uint32_t expires_ms = r->expires_ms;
	uint32_t n_expired = r->n_expired, n_joined = r->n_joined;

	jobs_begin(r);
	r->expires_ms = expires_ms;
	r->n_expired = n_expired;
	r->n_joined = n_joined;
	r->rules_only = true;
}

static void
job_add_protocol(struct rtnl *r, uint8_t protocol)
{
	job_add(r, DUMP_ROUTES, 4, protocol);
	job_add(r, DUMP_ROUTES, 6, protocol);
}

void
dump_plan(struct rtnl *r, enum dump_extent extent)
{
	jobs_begin(r);
	job_add(r, DUMP_NEXTHOPS, 0, 0);
	job_add_protocol(r, extent == DUMP_ALL ? 0 : RTPROT_KERNEL);
	if (extent == DUMP_ALL)
		job_add_labels(r);
	r->whole = extent == DUMP_ALL;
	r->has_dead &= !r->whole;
}

void
dump_plan_mortal(struct rtnl *r)
{
	jobs_begin(r);
	if (r->large)
		job_add(r, DUMP_ROUTES, 6, 0);
	for (unsigned int p = 0; p < 256 && !r->large; p++)
		if (r->mortal[p])
			job_add(r, DUMP_ROUTES, 6, (uint8_t)p);
}

void
dump_plan_held(struct rtnl *r)
{
	if (r->large || r->cut[0] || r->cut[1]) {
		dump_plan(r, DUMP_ALL);
		return;
	}
	jobs_begin(r);
	r->has_dead = false;
	job_add(r, DUMP_NEXTHOPS, 0, 0);
	for (unsigned int p = 0; p < 256; p++)
		if (r->held[p])
			job_add_protocol(r, (uint8_t)p);
	if (r->held_labels)
		job_add_labels(r);
}
