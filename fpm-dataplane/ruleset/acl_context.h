/* SPDX-License-Identifier: BSD-3-Clause */
/* acl_context: the rules of a chain for rte_acl, and the keys of packets. */
#ifndef RULESET_ACL_CONTEXT_H
#define RULESET_ACL_CONTEXT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_acl.h>

#include "ruleset/acl_alg.h"

/*
 * Limit of the CPU time for the classifiers of a ruleset. 10,000 rules with wide ranges
 * in all fields take 6 s, and 450 MB of memory during the build. The filter thread does
 * not answer queries meanwhile.
 */
#define ACL_BUILD_MAX_NS 12000000000

struct key4 {
	uint8_t proto, unused[3];
	uint8_t src[4], dst[4];
	uint8_t sport[2], dport[2];
	uint8_t bits[4];
};
static_assert(offsetof(struct key4, bits) == offsetof(struct key4, src) + 12,
	      "addresses and ports are together, as in a packet without options");

struct key6 {
	uint8_t proto, unused[3];
	uint8_t src[16], dst[16];
	uint8_t sport[2], dport[2];
	uint8_t bits[4];
};

static_assert(sizeof(struct key6) == ACL_KEY_BYTES, "the longest key");

/* Fields of rte_acl. The last N_FIELD_BITS are used if a rule of the chain names a set. */
#define N_FIELD_BITS 4
#define N_FIELD4     (5 + N_FIELD_BITS)
#define N_FIELD6     (11 + N_FIELD_BITS)
RTE_ACL_RULE_DEF(acl_rule4, N_FIELD4);
RTE_ACL_RULE_DEF(acl_rule6, N_FIELD6);

/* Rules of rte_acl. */
struct acl_build {
	uint8_t family;
	unsigned int n_field;
	size_t rule_bytes;
	uint8_t *rule; /* rules of rte_acl, one after the other */
	uint32_t n, room;
};

/*
 * Build a context, and subtract the CPU time from *left_ns. Returns NULL if the build
 * failed, or if it would take longer. Needs the EAL. [filter]
 */
struct rte_acl_ctx *acl_context_build(const struct acl_build *b, unsigned int n_category,
				      int64_t *left_ns);

#endif
