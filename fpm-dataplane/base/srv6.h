/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * srv6: what a next hop of SRv6 does (RFC 8986), packed into words of 32 bits as a label stack
 * is, so that next hops with segments are kept and compared as next hops with labels are. Pure
 * functions.
 *
 * End point: word 0 has the action, word 1 the table, the others the next hop.
 * Headend:   word 0 has the mode and the number of segments; four words for each segment
 *            follow, in the order of the packet: the first to visit is the last.
 */
#ifndef BASE_SRV6_H
#define BASE_SRV6_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/inet.h"
#include "base/prefix.h"

/* Numbers of the kernel (linux/seg6_local.h), which zebra sends. */
enum srv6_action {
	SRV6_END = 1,
	SRV6_END_X = 2,
	SRV6_END_T = 3,
	SRV6_END_DX6 = 5,
	SRV6_END_DX4 = 6,
	SRV6_END_DT6 = 7,
	SRV6_END_DT4 = 8,
	SRV6_END_DT46 = 16,
};

/* Bits of the flavors of an end point: RFC 8986, 4.16, RFC 9800, 4.1. */
enum {
	SRV6_PSP = 1 << 1,
	SRV6_USP = 1 << 2,
	SRV6_USD = 1 << 3,
	SRV6_NEXT_CSID = 1 << 4,
};

enum srv6_mode { SRV6_ENCAP = 1, SRV6_ENCAP_RED = 3 };

/* Why a next hop of SRv6 is unsupported. The text is for `fpmctl show`. */
enum srv6_refusal {
	SRV6_TAKEN,
	SRV6_OTHER_ACTION,
	SRV6_OTHER_FLAVOR,
	SRV6_OTHER_MODE,
	SRV6_MANY_SEGMENTS,
	SRV6_OWN_SOURCE,
	SRV6_N_REFUSAL,
};

static inline const char *
srv6_refusal_text(uint8_t refusal)
{
	static const char *const text[SRV6_N_REFUSAL] = {
		[SRV6_TAKEN] = "not supported",
		[SRV6_OTHER_ACTION] = "the action is not supported",
		[SRV6_OTHER_FLAVOR] = "a flavor of the action is not supported",
		[SRV6_OTHER_MODE] = "the mode of the headend is not supported",
		[SRV6_MANY_SEGMENTS] = "more than three segments",
		[SRV6_OWN_SOURCE] = "a source address for this next hop only",
	};

	return refusal < SRV6_N_REFUSAL ? text[refusal] : text[SRV6_TAKEN];
}

#define SRV6_WORDS_MAX    14u /* as struct stack of rib has */
#define SRV6_SEGMENTS_MAX 3u
#define SRV6_HEADEND      0x80000000u

struct srv6_sid {
	uint8_t action;                /* enum srv6_action */
	uint8_t flavors;               /* SRV6_PSP, ... */
	uint8_t block_bits, node_bits; /* of NEXT-C-SID */
	uint32_t table;                /* of the kernel: End.T, End.DT* */
	uint8_t family;                /* of `hop`; 0: none */
	struct ipaddr hop;             /* End.X, End.DX* */
};

/* Return true if the action decapsulates and looks up the packet inside in a table. */
static inline bool
srv6_is_dt(uint8_t action)
{
	return action == SRV6_END_DT4 || action == SRV6_END_DT6 || action == SRV6_END_DT46;
}

/* Return the number of words written, at most SRV6_WORDS_MAX. */
static inline uint8_t
srv6_sid_pack(const struct srv6_sid *sid, uint32_t *word)
{
	unsigned int n = 2;

	word[0] = sid->action | (uint32_t)sid->flavors << 8 |
		  (uint32_t)(sid->block_bits & 127) << 16 |
		  (uint32_t)(sid->node_bits & 127) << 23;
	word[1] = sid->table;
	for (unsigned int i = 0; sid->family != 0 && i < family_octets(sid->family); i += 4)
		word[n++] = get_be32(sid->hop.octet + i);
	return (uint8_t)n;
}

/* Read the words of an end point. Return false if they are none. */
static inline bool
srv6_sid_unpack(const uint32_t *word, unsigned int n, struct srv6_sid *sid)
{
	memset(sid, 0, sizeof(*sid));
	if ((n != 2 && n != 3 && n != 6) || (word[0] & SRV6_HEADEND) != 0)
		return false;
	sid->action = word[0] & 0xff;
	sid->flavors = word[0] >> 8 & 0xff;
	sid->block_bits = word[0] >> 16 & 127;
	sid->node_bits = word[0] >> 23 & 127;
	sid->table = word[1];
	sid->family = n == 3 ? 4 : n == 6 ? 6 : 0;
	for (unsigned int i = 2; i < n; i++)
		put_be32(sid->hop.octet + 4 * (i - 2), word[i]);
	return true;
}

/* Return the number of words of a headend with `n` segments of 16 octets each. */
static inline uint8_t
srv6_headend_pack(enum srv6_mode mode, const uint8_t *segments, unsigned int n,
		  uint32_t *word)
{
	word[0] = SRV6_HEADEND | (uint32_t)mode << 8 | n;
	for (unsigned int i = 0; i < 4 * n; i++)
		word[1 + i] = get_be32(segments + 4 * i);
	return (uint8_t)(1 + 4 * n);
}

/* Return the number of segments of a headend, and set its mode; 0: the words are of none. */
static inline unsigned int
srv6_headend_unpack(const uint32_t *word, unsigned int n, enum srv6_mode *mode)
{
	unsigned int segments;

	if (n == 0 || (word[0] & SRV6_HEADEND) == 0)
		return 0;
	segments = word[0] & 0xff;
	*mode = (enum srv6_mode)(word[0] >> 8 & 0xff);
	return n == 1 + 4 * segments ? segments : 0;
}

#endif
