/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rows of `show filter`: one row for the ruleset, then one for each rule, in the order of
 * chains. [filter]
 */
#include "filter/rows.h"

#include <jansson.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/counters.h"
#include "base/log.h"
#include "fib/fib.h"

static const char *const state_name[] = {[FILTER_OFF] = "off",
					 [FILTER_IN_FORCE] = "in-force",
					 [FILTER_OLD] = "old-in-force",
					 [FILTER_ABSENT] = "absent"};

static json_t *
text_or_null(const char *text)
{
	char safe[2 * FILTER_NAME];

	return text == NULL || text[0] == '\0'
		       ? json_null()
		       : json_string(log_escape_name(text, safe, sizeof(safe)));
}

static json_t *
ruleset_row(const struct filter *f, const struct ruleset *r)
{
	bool real = f->state == FILTER_IN_FORCE || f->state == FILTER_OLD;

	return json_pack(
		"{s:s, s:o, s:s, s:s, s:o, s:I, s:I, s:I, s:o, s:I}", "kind", "ruleset",
		"table", text_or_null(f->conf.table), "state", state_name[f->state],
		"on_error", f->conf.pass_on_error ? "pass" : "drop", "generation",
		real ? json_integer(r->generation) : json_null(), "generation_read",
		(json_int_t)f->seen, "chains", (json_int_t)(real ? r->n_chain : 0), "rules",
		(json_int_t)(real ? r->n_rule : 0), "refused", text_or_null(f->why),
		"since_s",
		(json_int_t)(f->state == FILTER_OFF
				     ? 0
				     : (monotonic_ms() - f->since_ms) / 1000));
}

static void
count_sum(const struct filter *f, const struct ruleset_state *s, struct ruleset_count *sum)
{
	*sum = (struct ruleset_count){0};
	for (unsigned int t = 0; t < f->conf.n_thread; t++) {
		sum->packets += counter_read(&s->count[t].packets);
		sum->octets += counter_read(&s->count[t].octets);
	}
}

/* Return the word for the action of a rule, and set *to to the chain of a jump. */
static const char *
rule_action(const struct ruleset *r, const struct ruleset_rule *rule, const char **to)
{
	static const char *const name[] = {
		[CODE_CONTINUE] = "continue", [CODE_BREAK] = "continue",
		[CODE_ACCEPT] = "accept",     [CODE_DROP] = "drop",
		[CODE_JUMP] = "jump",         [CODE_GOTO] = "goto",
		[CODE_RETURN] = "return",     [CODE_REJECT] = "reject"};

	*to = NULL;
	for (uint32_t i = 0; i < rule->n_op; i++) {
		const struct ruleset_op *op = &r->op[rule->op + i];

		if (op->kind == OP_REJECT)
			return name[CODE_REJECT];
		if (op->kind == OP_LOOKUP && r->set[op->set].has_verdicts)
			return "map";
		if (op->kind != OP_VERDICT)
			continue;
		if (op->verdict.chain != RULESET_NONE)
			*to = r->chain[op->verdict.chain].name;
		return name[op->verdict.code];
	}
	return name[CODE_CONTINUE];
}

static json_t *
rule_row(const struct filter *f, const struct ruleset *r, const struct ruleset_rule *rule)
{
	struct ruleset_count sum;
	const char *to, *action = rule_action(r, rule, &to);

	count_sum(f, rule->state, &sum);
	return json_pack("{s:s, s:o, s:I, s:s, s:o, s:o, s:I, s:I}", "kind", "rule",
			 "chain", text_or_null(r->chain[rule->chain].name), "handle",
			 (json_int_t)rule->handle, "action", action, "to", text_or_null(to),
			 "comment", text_or_null(rule->comment), "packets",
			 (json_int_t)sum.packets, "octets", (json_int_t)sum.octets);
}

void
filter_rows(const struct filter *f, struct msg_query *q)
{
	const struct ruleset *r =
		atomic_load_explicit(&f->conf.fib->filter, memory_order_relaxed);
	uint32_t n = r == NULL ? 0 : r->n_rule;

	/*
	 * cursor[0]: rows sent so far. If the ruleset changes between two answers, a rule
	 * may be shown twice.
	 */
	while (json_array_size(q->rows) < q->max && q->cursor[0] <= n) {
		uint64_t at = q->cursor[0]++;

		json_array_append_new(q->rows, at == 0 ? ruleset_row(f, r)
						       : rule_row(f, r, &r->rule[at - 1]));
	}
	q->done = q->cursor[0] > n;
}
