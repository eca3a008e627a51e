/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * acl_context: build the context of rte_acl for the rules of a chain, unless it takes too
 * long. The time and the memory of a build are unknown before it: they depend on the number
 * of rules and on the way in which their ranges overlap. A build cannot be stopped. So
 * samples of the rules of a long chain are built first. [filter]
 */
#include "ruleset/acl_context.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ruleset/acl.h"

#define SAMPLE       500u /* rules of the first sample */
#define SAMPLE_GROWS 4u   /* factor from the rules of a sample to those of the next one */
#define SAMPLE_SHARE 16u  /* the last sample is at least this part of all rules */
#define SECOND_NS    1000000000

static const struct rte_acl_field_def defs4[N_FIELD4] = {
	{RTE_ACL_FIELD_TYPE_BITMASK, 1, 0, 0, offsetof(struct key4, proto)},
	{RTE_ACL_FIELD_TYPE_MASK, 4, 1, 1, offsetof(struct key4, src)},
	{RTE_ACL_FIELD_TYPE_MASK, 4, 2, 2, offsetof(struct key4, dst)},
	{RTE_ACL_FIELD_TYPE_RANGE, 2, 3, 3, offsetof(struct key4, sport)},
	{RTE_ACL_FIELD_TYPE_RANGE, 2, 4, 3, offsetof(struct key4, dport)},
	{RTE_ACL_FIELD_TYPE_BITMASK, 1, 5, 4, offsetof(struct key4, bits)},
	{RTE_ACL_FIELD_TYPE_BITMASK, 1, 6, 4, offsetof(struct key4, bits) + 1},
	{RTE_ACL_FIELD_TYPE_BITMASK, 1, 7, 4, offsetof(struct key4, bits) + 2},
	{RTE_ACL_FIELD_TYPE_BITMASK, 1, 8, 4, offsetof(struct key4, bits) + 3},
};

static const struct rte_acl_field_def defs6[N_FIELD6] = {
	{RTE_ACL_FIELD_TYPE_BITMASK, 1, 0, 0, offsetof(struct key6, proto)},
	{RTE_ACL_FIELD_TYPE_MASK, 4, 1, 1, offsetof(struct key6, src)},
	{RTE_ACL_FIELD_TYPE_MASK, 4, 2, 2, offsetof(struct key6, src) + 4},
	{RTE_ACL_FIELD_TYPE_MASK, 4, 3, 3, offsetof(struct key6, src) + 8},
	{RTE_ACL_FIELD_TYPE_MASK, 4, 4, 4, offsetof(struct key6, src) + 12},
	{RTE_ACL_FIELD_TYPE_MASK, 4, 5, 5, offsetof(struct key6, dst)},
	{RTE_ACL_FIELD_TYPE_MASK, 4, 6, 6, offsetof(struct key6, dst) + 4},
	{RTE_ACL_FIELD_TYPE_MASK, 4, 7, 7, offsetof(struct key6, dst) + 8},
	{RTE_ACL_FIELD_TYPE_MASK, 4, 8, 8, offsetof(struct key6, dst) + 12},
	{RTE_ACL_FIELD_TYPE_RANGE, 2, 9, 9, offsetof(struct key6, sport)},
	{RTE_ACL_FIELD_TYPE_RANGE, 2, 10, 9, offsetof(struct key6, dport)},
	{RTE_ACL_FIELD_TYPE_BITMASK, 1, 11, 10, offsetof(struct key6, bits)},
	{RTE_ACL_FIELD_TYPE_BITMASK, 1, 12, 10, offsetof(struct key6, bits) + 1},
	{RTE_ACL_FIELD_TYPE_BITMASK, 1, 13, 10, offsetof(struct key6, bits) + 2},
	{RTE_ACL_FIELD_TYPE_BITMASK, 1, 14, 10, offsetof(struct key6, bits) + 3},
};

/* Build a context of `n` rules. */
static struct rte_acl_ctx *
context_build(const struct acl_build *b, const uint8_t *rule, uint32_t n,
	      unsigned int n_category)
{
	static atomic_uint number;
	char name[RTE_ACL_NAMESIZE];
	struct rte_acl_param param = {.name = name,
				      .socket_id = SOCKET_ID_ANY,
				      .rule_size = (uint32_t)b->rule_bytes,
				      .max_rule_num = n};
	struct rte_acl_config config = {.num_categories = n_category,
					.num_fields = b->n_field};
	struct rte_acl_ctx *ctx;

	/*
	 * If the name is in use, the library returns the context of that name, even the
	 * context of another daemon when processes share memory (fpm-nics). So use a unique
	 * name.
	 */
	snprintf(name, sizeof(name), "filter-%d-%u", (int)getpid(),
		 atomic_fetch_add(&number, 1));
	if (b->family == 4)
		memcpy(config.defs, defs4, sizeof(defs4));
	else
		memcpy(config.defs, defs6, sizeof(defs6));
	ctx = rte_acl_create(&param);
	if (ctx == NULL)
		return NULL;
	if (rte_acl_add_rules(ctx, (const struct rte_acl_rule *)rule, n) < 0 ||
	    rte_acl_build(ctx, &config) < 0) {
		rte_acl_free(ctx);
		return NULL;
	}
	return ctx;
}

/* Return the CPU time of this thread. */
static int64_t
cpu_ns(void)
{
	struct timespec now = {0};

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec;
}

/*
 * Build a context of `n` of the rules, which have equal distances in the list. Returns the
 * CPU time, or INT64_MAX if the build fails.
 */
static int64_t
sample_time(const struct acl_build *b, uint32_t n, unsigned int n_category)
{
	uint8_t *rule = malloc(n * b->rule_bytes);
	int64_t begin = cpu_ns();
	struct rte_acl_ctx *ctx;

	if (rule == NULL)
		return INT64_MAX;
	for (uint32_t i = 0; i < n; i++)
		memcpy(rule + i * b->rule_bytes,
		       b->rule + (uint64_t)i * b->n / n * b->rule_bytes, b->rule_bytes);
	ctx = context_build(b, rule, n, n_category);
	free(rule);
	if (ctx == NULL)
		return INT64_MAX;
	rte_acl_free(ctx);
	return cpu_ns() - begin;
}

/*
 * Build a sample, and then larger ones. Return true if they take so little time that all
 * rules need at most `left_ns`. In measurements the time for each rule at most doubled when
 * there were 16 times as many rules.
 */
static bool
samples_are_fast(const struct acl_build *b, unsigned int n_category, int64_t left_ns)
{
	int64_t end = cpu_ns() + left_ns;

	for (uint64_t n = SAMPLE;; n *= SAMPLE_GROWS) {
		int64_t took = sample_time(b, (uint32_t)n, n_category);

		if (took == INT64_MAX || (end - cpu_ns()) / b->n < 2 * took / (int64_t)n)
			return false;
		if (n * SAMPLE_SHARE >= b->n)
			return true;
	}
}

struct rte_acl_ctx *
acl_context_build(const struct acl_build *b, unsigned int n_category, int64_t *left_ns)
{
	bool is_long = b->n > SAMPLE * SAMPLE_GROWS;
	int64_t begin = cpu_ns();
	struct rte_acl_ctx *ctx = NULL;

	if (*left_ns <= 0)
		return NULL;
	if (!is_long || samples_are_fast(b, n_category, *left_ns))
		ctx = context_build(b, b->rule, b->n, n_category);
	*left_ns -= cpu_ns() - begin;
	/* The library has freed hundreds of megabytes, which malloc() keeps otherwise. */
	if (is_long)
		(void)malloc_trim(0);
	if (ctx != NULL)
		acl_alg_choose(ctx,
			       b->family == 4 ? sizeof(struct key4) : sizeof(struct key6),
			       n_category);
	return ctx;
}
