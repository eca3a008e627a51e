/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * acl: use rte_acl to skip the rules of a long chain that cannot match a packet.
 *
 * For each rule the classifier has conditions on protocol, addresses and ports. Every
 * packet that the rule matches meets them, but a packet that meets them need not match. So
 * the interpreter evaluates the first rule that the classifier names; it skips the rules
 * before that rule without a change of the result. rte_acl names one rule per category. A
 * chain is cut into segments, a category each, after rules that do not end the chain.
 *
 * The conditions of many rules are exact: the rule matches each packet that meets them. If
 * such a rule only counts and decides, the interpreter does not evaluate it (struct
 * ruleset_rule, sure).
 *
 * A bit of the key shows whether a field is in a set, because the elements of a set change
 * while the classifier stays.
 */
#ifndef RULESET_ACL_H
#define RULESET_ACL_H

#include "ruleset/ruleset.h"

#define ACL_SEGMENTS_MAX 16 /* categories of rte_acl */
/* Least number of rules for a classifier; shorter chains are evaluated rule by rule. */
#define ACL_RULES_MIN 4

#define ACL_BITS_MAX 32 /* pairs of a field and a set */

struct rte_acl_ctx;

/* A bit of the key: a field of the packet is in a set. */
struct ruleset_acl_bit {
	uint8_t field; /* enum field in acl.c */
	uint32_t set;
};

struct ruleset_acl {
	struct rte_acl_ctx *ctx;
	uint32_t n_segment, n_category;
	/* End of each segment, as an index of ruleset.rule. */
	uint32_t end[ACL_SEGMENTS_MAX];
	const struct ruleset *r;
	uint32_t n_bit;
	struct ruleset_acl_bit bit[ACL_BITS_MAX];
};

/*
 * Build the classifiers of all long chains, one for each family of a chain. Returns the
 * number of classifiers whose build failed; for their families the chains are walked. Needs
 * the EAL. [filter]
 */
unsigned int ruleset_acl_build(struct ruleset *r);
void ruleset_acl_free(struct ruleset_acl *acl);

/*
 * Classify packets of one family by a chain. Packet k begins segment s at the rule with the
 * index result[k * n_category + s] - 1. If this result is 0, the packet skips the whole
 * segment. The caller has called ruleset_look() for each packet. [RCU reader]
 */
void ruleset_acl_classify(const struct ruleset_acl *acl, struct ruleset_packet *const *p,
			  unsigned int n, uint32_t *result);

/* Return true if the classifier names no rule; `begins` is its result for one packet. */
static inline bool
ruleset_acl_is_silent(const struct ruleset_acl *acl, const uint32_t *begins)
{
	uint32_t any = 0;

	for (uint32_t s = 0; s < acl->n_segment; s++)
		any |= begins[s];
	return any == 0;
}

/*
 * Classify IPv4 packets at `ip` that have a header of 20 octets and both ports, at `now` in
 * ticks. The result has the form of ruleset_acl_classify(). [RCU reader]
 */
void ruleset_acl_classify4(const struct ruleset_acl *acl, const uint8_t *const *ip,
			   unsigned int n, uint64_t now, uint32_t *result);

#endif
