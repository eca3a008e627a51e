/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists in which replaced objects wait for their grace period. [rib]. Each commit has one
 * call_rcu. Its callback, on liburcu's thread, sends MSG_RECLAIM and frees nothing.
 */
#include "rib/reclaim.h"

#include <stdlib.h>

#include "base/clock.h"
#include "rib/index.h"
#include "rib/impl.h"

struct reclaim *
reclaim_open(struct rib *rib)
{
	if (rib->reclaims.open == NULL) {
		rib->reclaims.open = mem_or_abort(calloc(1, sizeof(*rib->reclaims.open)));
		rib->reclaims.open->rib = rib;
		rib->reclaims.open->feedback_end = &rib->reclaims.open->feedback;
	}
	return rib->reclaims.open;
}

void
reclaim_block(struct rib *rib, void *block)
{
	struct reclaim *p = reclaim_open(rib);

	if (p->n_blocks == p->cap_blocks) {
		p->cap_blocks = p->cap_blocks == 0 ? 16 : p->cap_blocks * 2;
		p->blocks =
			mem_or_abort(realloc(p->blocks, p->cap_blocks * sizeof(void *)));
	}
	p->blocks[p->n_blocks++] = block;
}

void
reclaim_nodes(struct rib *rib, struct poptrie *pt, struct poptrie_retired *r)
{
	struct reclaim *p = reclaim_open(rib);

	r->user[0] = p->retired;
	r->user[1] = pt;
	p->retired = r;
}

/* Send MSG_RECLAIM to rib. [liburcu's thread] */
static void
reclaim_due(struct rcu_head *head)
{
	struct reclaim *p = caa_container_of(head, struct reclaim, rcu);
	struct msg_reclaim *m = msg_new(MSG_RECLAIM, sizeof(*m));
	struct rib *rib;

	GRACE_ACQUIRE(p);
	rib = p->rib;
	GRACE_OVER();
	m->fn = p->run;
	m->arg = p;
	worker_send(rib->worker, &m->m);
	GRACE_RELEASE(rib);
}

void
reclaim_start(struct rib *rib, void (*run)(void *rib, void *reclaim))
{
	struct reclaim *p = rib->reclaims.open;

	if (p == NULL)
		return;
	rib->reclaims.open = NULL;
	cds_list_add_tail(&p->node, &rib->reclaims.list);
	rib->reclaims.n++;
	p->run = run;
	p->since_ns = monotonic_ns();
	GRACE_RELEASE(p);
	urcu_qsbr_call_rcu(&p->rcu, reclaim_due);
}

void
reclaim_memory(struct reclaim *p)
{
	struct poptrie_retired *next;

	for (struct poptrie_retired *r = p->retired; r != NULL; r = next) {
		next = r->user[0];
		poptrie_reclaim(r->user[1], r);
	}
	for (uint32_t i = 0; i < p->n_blocks; i++)
		free(p->blocks[i]);
}

void
reclaim_finish(struct rib *rib, struct reclaim *p)
{
	if (p->node.next == NULL)
		return;
	histogram_add(&fpm_status.grace, (monotonic_ns() - p->since_ns) / 1000);
	cds_list_del(&p->node);
	rib->reclaims.n--;
}

void
reclaim_free(struct reclaim *p)
{
	vec32_free(&p->slots);
	vec32_free(&p->sids);
	vec32_free(&p->adjs);
	vec32_free(&p->encaps);
	vec32_free(&p->end_points);
	free(p->blocks);
	free(p);
}
