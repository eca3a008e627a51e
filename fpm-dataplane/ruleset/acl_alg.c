/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * acl_alg: choose the instructions with which rte_acl classifies.                [filter]
 *
 * The library prefers the widest vectors. Those of AVX2 gather the transitions of eight
 * packets with one instruction, which is slower than eight loads on Zen 1, and on Intel
 * CPUs whose microcode protects gathers. With 1,000 rules and a full table on Zen 1, all
 * stages take 1.80 times as many cycles as without a filter with AVX2, and 1.62 times with
 * SSE.
 */
#include "ruleset/acl_alg.h"

#include <netinet/in.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "ruleset/acl.h"

#define KEYS   64
#define ROUNDS 8 /* the fastest counts: the thread may lose its CPU in the others */

static const enum rte_acl_classify_alg algs[] = {
	RTE_ACL_CLASSIFY_SCALAR,    RTE_ACL_CLASSIFY_SSE,       RTE_ACL_CLASSIFY_AVX2,
	RTE_ACL_CLASSIFY_AVX512X16, RTE_ACL_CLASSIFY_AVX512X32, RTE_ACL_CLASSIFY_NEON,
};

/* Fill the keys: random packets of TCP and UDP. */
static void
keys_fill(uint8_t key[KEYS][ACL_KEY_BYTES], unsigned int key_bytes)
{
	uint32_t random = 1;

	for (unsigned int i = 0; i < KEYS; i++) {
		for (unsigned int at = 0; at < key_bytes; at++) {
			random = random * 1664525 + 1013904223;
			key[i][at] = random >> 24;
		}
		key[i][0] = i % 2 == 0 ? IPPROTO_TCP : IPPROTO_UDP;
	}
}

/* Return the ticks that the context takes for the keys. */
static uint64_t
alg_time(const struct rte_acl_ctx *ctx, const uint8_t **key, uint32_t n_category)
{
	uint32_t result[KEYS * ACL_SEGMENTS_MAX];
	uint64_t best = UINT64_MAX;

	for (int round = 0; round < ROUNDS; round++) {
		uint64_t begin = rte_rdtsc(), ticks;

		rte_acl_classify(ctx, key, result, KEYS, n_category);
		ticks = rte_rdtsc() - begin;
		best = ticks < best ? ticks : best;
	}
	return best;
}

void
acl_alg_choose(struct rte_acl_ctx *ctx, unsigned int key_bytes, uint32_t n_category)
{
	enum rte_acl_classify_alg best = RTE_ACL_CLASSIFY_DEFAULT;
	uint8_t key[KEYS][ACL_KEY_BYTES];
	uint64_t least = UINT64_MAX;
	const uint8_t *at[KEYS];

	keys_fill(key, key_bytes);
	for (unsigned int i = 0; i < KEYS; i++)
		at[i] = key[i];
	for (unsigned int i = 0; i < RTE_DIM(algs); i++) {
		uint64_t ticks;

		/* rte_acl refuses instructions that the CPU does not have. */
		if (rte_acl_set_ctx_classify(ctx, algs[i]) < 0)
			continue;
		ticks = alg_time(ctx, at, n_category);
		if (ticks < least) {
			least = ticks;
			best = algs[i];
		}
	}
	rte_acl_set_ctx_classify(ctx, best);
}
