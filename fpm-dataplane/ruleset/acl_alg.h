/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * acl_alg: choose the instructions with which rte_acl classifies.
 *
 * Private to ruleset/.                                                        [filter]
 */
#ifndef RULESET_ACL_ALG_H
#define RULESET_ACL_ALG_H

#include <stdint.h>

#include <rte_acl.h>

#define ACL_KEY_BYTES 44 /* of the longest key */

/*
 * Let a built context use the fastest instructions that this CPU has and the daemon may
 * use. The function measures them with this context, which takes 60 to 70 us with 1,000
 * rules on Zen 1.
 *
 * key_bytes   length of a key, at most ACL_KEY_BYTES; its first octet is the protocol
 * n_category  as in rte_acl_classify(), at most ACL_SEGMENTS_MAX
 */
void acl_alg_choose(struct rte_acl_ctx *ctx, unsigned int key_bytes, uint32_t n_category);

#endif
