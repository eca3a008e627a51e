/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * srv6_words: the behavior of a next hop of SRv6 (RFC 8986), packed into words of 32 bits
 * like a label stack, so that next hops with segments are stored and compared like next
 * hops with labels. Pure functions.
 *
 * End point: word 0 has the action. Word 1 has the table, or with an IPv6 next hop the
 *            interface to this next hop. The other words have the next hop. For
 *            End.B6.Encaps they are its policy, the words of a headend.
 * Headend:   word 0 has the mode and the number of segments; four words for each segment
 *            follow, in the order of the packet: the first segment to visit is the last. If
 *            the next hop has its own source address for the outer header, four more words
 *            have it.
 */
#ifndef BASE_SRV6_WORDS_H
#define BASE_SRV6_WORDS_H

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
	SRV6_END_B6_ENCAPS = 10,
	SRV6_END_DT46 = 16,
};

/* Bits of the flavors of an end point: RFC 8986, 4.16, RFC 9800, 4.1. */
enum {
	SRV6_PSP = 1 << 1,
	SRV6_USP = 1 << 2,
	SRV6_USD = 1 << 3,
	SRV6_NEXT_CSID = 1 << 4,
};

/*
 * A bit in addition to the flavors: End.DT6 names its table by SEG6_LOCAL_TABLE. Linux then
 * looks that table up alone. With SEG6_LOCAL_VRFTABLE it follows the rules, as for packets
 * of the VRF.
 */
#define SRV6_TABLE_ALONE (1u << 5)

enum srv6_mode { SRV6_ENCAP = 1, SRV6_ENCAP_RED = 3 };

/*
 * The reasons for which a next hop of SRv6 is unsupported. The text is for `fpmctl show`.
 */
enum srv6_refusal {
	SRV6_TAKEN,
	SRV6_OTHER_ACTION,
	SRV6_OTHER_FLAVOR,
	SRV6_OTHER_MODE,
	SRV6_MANY_SEGMENTS,
	SRV6_OTHER_HEADER,
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
		[SRV6_MANY_SEGMENTS] = "more segments than a packet buffer has room for",
		[SRV6_OTHER_HEADER] = "a routing header with flags, a tag or options",
	};

	return refusal < SRV6_N_REFUSAL ? text[refusal] : text[SRV6_TAKEN];
}

/* Return true if a next hop with this refusal is a headend. */
static inline bool
srv6_refusal_is_of_headend(uint8_t refusal)
{
	return refusal == SRV6_OTHER_MODE || refusal == SRV6_MANY_SEGMENTS ||
	       refusal == SRV6_OTHER_HEADER;
}

/*
 * The largest outer headers that fit into the headroom of a packet buffer (128) together
 * with two VLAN tags.
 */
#define SRV6_HEAD_MAX     112u
#define SRV6_SEGMENTS_MAX 5u
#define SRV6_WORDS_MAX    (2 + 1 + 4 * SRV6_SEGMENTS_MAX + 4)
#define SRV6_HEADEND      0x80000000u
#define SRV6_HAS_SOURCE   0x40000000u /* flag of a headend: a source address follows */
#define SRV6_HAS_POLICY   0x40000000u /* flag of an end point: a policy follows */

struct srv6_sid {
	uint8_t action;                /* enum srv6_action */
	uint8_t flavors;               /* SRV6_PSP, ... */
	uint8_t block_bits, node_bits; /* of NEXT-C-SID */
	/* Table of the kernel for the lookup (End.T, End.DT*) */
	uint32_t table;
	uint8_t family;    /* of `hop`; 0: none */
	struct ipaddr hop; /* End.X, End.DX* */
	/* End.X: the ifindex of the interface to `hop`; 0: none is given. */
	uint32_t oif;
	/*
	 * End.B6.Encaps: the words of its headend. They are part of the words of the SID.
	 */
	const uint32_t *policy;
	uint8_t n_policy;
};

/* Return true if the action decapsulates and looks up the inner packet in a table. */
static inline bool
srv6_is_dt(uint8_t action)
{
	return action == SRV6_END_DT4 || action == SRV6_END_DT6 || action == SRV6_END_DT46;
}

/* Pack an end point. Return the number of words written, at most SRV6_WORDS_MAX. */
static inline uint8_t
srv6_sid_pack(const struct srv6_sid *sid, uint32_t *word)
{
	unsigned int n = 2;

	word[0] = sid->action | (uint32_t)sid->flavors << 8 |
		  (uint32_t)(sid->block_bits & 127) << 16 |
		  (uint32_t)(sid->node_bits & 127) << 23;
	word[1] = sid->family == 6 ? sid->oif : sid->table;
	if (sid->n_policy != 0) {
		word[0] |= SRV6_HAS_POLICY;
		memcpy(word + 2, sid->policy, sid->n_policy * sizeof(*word));
		return sid->n_policy + 2;
	}
	for (unsigned int i = 0; sid->family != 0 && i < family_octets(sid->family); i += 4)
		word[n++] = get_be32(sid->hop.octet + i);
	return (uint8_t)n;
}

/*
 * Return the length in octets of the routing header of a headend with `n` segments; 0: it
 * has no such header. With SRV6_ENCAP_RED the first segment is only in the destination
 * address (RFC 8754, 4.1.1; RFC 8986, 5.2).
 */
static inline unsigned int
srv6_srh_bytes(enum srv6_mode mode, unsigned int n)
{
	if (mode == SRV6_ENCAP_RED)
		n--;
	return mode == SRV6_ENCAP_RED && n == 0 ? 0 : 8 + 16 * n;
}

/* Pack a headend with `n` segments of 16 octets each. Return the number of words. */
static inline uint8_t
srv6_headend_pack(enum srv6_mode mode, const uint8_t *segments, unsigned int n,
		  uint32_t *word)
{
	word[0] = SRV6_HEADEND | (uint32_t)mode << 8 | n;
	for (unsigned int i = 0; i < 4 * n; i++)
		word[1 + i] = get_be32(segments + 4 * i);
	return (uint8_t)(1 + 4 * n);
}

/* Add a source address to the `n` words of a headend. Return the number of words. */
static inline uint8_t
srv6_headend_add_source(uint32_t *word, uint8_t n, const uint8_t source[16])
{
	word[0] |= SRV6_HAS_SOURCE;
	for (unsigned int i = 0; i < 4; i++)
		word[n + i] = get_be32(source + 4 * i);
	return n + 4;
}

/*
 * Return the number of segments of a headend; 0: the words are no headend. Set *mode, and
 * *source to the words of its source address (NULL: none).
 */
static inline unsigned int
srv6_headend_unpack(const uint32_t *word, unsigned int n, enum srv6_mode *mode,
		    const uint32_t **source)
{
	unsigned int segments, words;

	if (n == 0 || (word[0] & SRV6_HEADEND) == 0)
		return 0;
	segments = word[0] & 0xff;
	words = 1 + 4 * segments;
	*mode = (enum srv6_mode)(word[0] >> 8 & 0xff);
	*source = (word[0] & SRV6_HAS_SOURCE) != 0 ? word + words : NULL;
	if (*source != NULL)
		words += 4;
	return n == words && segments != 0 && segments <= SRV6_SEGMENTS_MAX &&
			       (*mode == SRV6_ENCAP || *mode == SRV6_ENCAP_RED) &&
			       40 + srv6_srh_bytes(*mode, segments) <= SRV6_HEAD_MAX
		       ? segments
		       : 0;
}

/* Unpack the words of an end point. Return false if they do not describe an end point. */
static inline bool
srv6_sid_unpack(const uint32_t *word, unsigned int n, struct srv6_sid *sid)
{
	const uint32_t *source;
	enum srv6_mode mode;

	memset(sid, 0, sizeof(*sid));
	if (n < 2 || (word[0] & SRV6_HEADEND) != 0)
		return false;
	sid->action = word[0] & 0xff;
	sid->flavors = word[0] >> 8 & 0xff;
	sid->block_bits = word[0] >> 16 & 127;
	sid->node_bits = word[0] >> 23 & 127;
	if (n == 6)
		sid->oif = word[1];
	else
		sid->table = word[1];
	if ((word[0] & SRV6_HAS_POLICY) != 0) {
		sid->policy = word + 2;
		sid->n_policy = (uint8_t)(n - 2);
		return srv6_headend_unpack(word + 2, n - 2, &mode, &source) != 0;
	}
	if (n != 2 && n != 3 && n != 6)
		return false;
	sid->family = n == 3 ? 4 : n == 6 ? 6 : 0;
	for (unsigned int i = 2; i < n; i++)
		put_be32(sid->hop.octet + 4 * (i - 2), word[i]);
	return true;
}

#endif
