/* SPDX-License-Identifier: BSD-3-Clause */
/* Free a ruleset. [filter] */
#include <stdlib.h>

#include "ruleset/acl.h"
#include "ruleset/members.h"
#include "ruleset/ruleset.h"

void
ruleset_state_drop(struct ruleset_state *state)
{
	if (state == NULL || --state->n_used > 0)
		return;
	free(state->limit);
	free(state->count);
	free(state);
}

static void
free_deferred(void *owner, void *memory)
{
	ruleset_free(memory);
}

void
ruleset_free_later(struct ruleset *r, const struct ruleset_reclaim *reclaim)
{
	if (reclaim->defer != NULL)
		reclaim->defer(reclaim->ctx, free_deferred, r);
	else
		ruleset_free(r);
}

void
ruleset_free(struct ruleset *r)
{
	if (r == NULL)
		return;
	for (uint32_t i = 0; i < r->n_rule; i++) {
		free(r->rule[i].comment);
		ruleset_state_drop(r->rule[i].state);
	}
	for (uint32_t i = 0; i < r->n_op; i++)
		if (r->op[i].kind == OP_LOG)
			free(r->op[i].log);
	for (uint32_t i = 0; i < r->n_chain; i++) {
		free(r->chain[i].name);
		ruleset_acl_free(r->chain[i].acl[0]);
		ruleset_acl_free(r->chain[i].acl[1]);
	}
	for (uint32_t i = 0; i < r->n_set; i++) {
		ruleset_members_free(&r->set[i]);
		free(r->set[i].other);
		free(r->set[i].name);
	}
	for (uint32_t i = 0; i < r->n_stateful; i++)
		ruleset_state_drop(r->stateful[i].state);
	free(r->base);
	free(r->chain);
	free(r->rule);
	free(r->op);
	free(r->set);
	free(r->stateful);
	free(r);
}
