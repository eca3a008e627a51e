/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpls_entry: label stack entries (RFC 3032, 2.1) and the special-purpose labels. Pure
 * functions.
 *
 *     | label, 20 bits | TC, 3 | S, 1 | TTL, 8 |      32 bits in network order
 *
 * The entry next to the payload has S set.
 */
#ifndef BASE_MPLS_ENTRY_H
#define BASE_MPLS_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

#define MPLS_TYPE           0x8847u /* EtherType of unicast, RFC 5332 */
#define MPLS_MULTICAST_TYPE 0x8848u

#define LABEL_BYTES 4u
#define LABEL_REST  0xfffu /* TC, S and TTL of an entry in host order */
#define LABELS_ALL  (1u << 20)

/*
 * Special-purpose labels: RFC 3032, RFC 6790, RFC 7274. Labels below 16 are never routed.
 */
enum {
	LABEL_IPV4_EXPLICIT_NULL = 0,
	LABEL_ROUTER_ALERT = 1,
	LABEL_IPV6_EXPLICIT_NULL = 2,
	LABEL_IMPLICIT_NULL = 3, /* only in signalling */
	LABEL_ENTROPY_INDICATOR = 7,
	LABEL_GAL = 13, /* generic associated channel, RFC 5586 */
	LABEL_OAM_ALERT = 14,
	LABEL_EXTENSION = 15,
	LABEL_SPECIAL_END = 16, /* the first ordinary label */
};

/*
 * The TTL of labels that a route pushes. With `encap mpls ... ttl N` the number is
 * LABEL_TTL_OWN | N, and N = 0 stands for the TTL of the packet. If the route has no TTL of
 * its own, the number is 0.
 */
#define LABEL_TTL_OWN     256u
#define LABEL_TTL_OWN_END 512u

/*
 * Where the TTL of a removed label goes (RFC 3443), if the route of the label says so:
 * `ip -f mpls route add ... ttl-propagate disabled`, RTA_TTL_PROPAGATE.
 */
enum label_mode {
	LABEL_MODE_DEFAULT, /* as the kernel's sysctls say */
	LABEL_MODE_PIPE,    /* to no header */
	LABEL_MODE_UNIFORM, /* to the next header, if it is lower than the TTL there */
};

/* Arguments of these functions are entries in host order. */

static inline uint32_t
label_of(uint32_t entry)
{
	return entry >> 12;
}

static inline uint8_t
label_tc(uint32_t entry)
{
	return entry >> 9 & 7;
}

static inline bool
label_is_bottom(uint32_t entry)
{
	return (entry >> 8 & 1) != 0;
}

static inline uint8_t
label_ttl(uint32_t entry)
{
	return entry & 0xff;
}

static inline uint32_t
label_entry(uint32_t label, uint8_t tc, bool bottom, uint8_t ttl)
{
	return label << 12 | (uint32_t)(tc & 7) << 9 | (uint32_t)bottom << 8 | ttl;
}

/*
 * Packed label stacks: up to LABELS_MAX labels in LABEL_WORDS words, in host order. Label i
 * is in the upper 20 bits of word i. The lower 10 bits of words 2k and 2k + 1 have the
 * lower and the upper half of one more number of 20 bits, for k from 0 to 6. Number 0 is
 * label 14, number 1 is label 15: they have no word of their own.
 */
#define LABELS_MAX  16u /* of a route: zebra sends at most 16 (FRR, MPLS_MAX_LABELS) */
#define LABEL_WORDS 14u

/* Return number `k` of the numbers in the lower bits. */
static inline uint32_t
labels_more(const uint32_t *word, unsigned int k)
{
	return (word[2 * k] & 0x3ffu) | (word[2 * k + 1] & 0x3ffu) << 10;
}

/* Set number `k`, which must be 0 before. */
static inline void
labels_add_more(uint32_t *word, unsigned int k, uint32_t number)
{
	word[2 * k] |= number & 0x3ffu;
	word[2 * k + 1] |= number >> 10 & 0x3ffu;
}

/* Return label `i` of a packed stack, below LABELS_MAX. */
static inline uint32_t
labels_at(const uint32_t *word, unsigned int i)
{
	return i < LABEL_WORDS ? label_of(word[i]) : labels_more(word, i - LABEL_WORDS);
}

/* Pack `n` labels, at most LABELS_MAX. Words without a label are 0. */
static inline void
labels_pack(uint32_t word[LABEL_WORDS], const uint32_t *label, unsigned int n)
{
	for (unsigned int i = 0; i < LABEL_WORDS; i++)
		word[i] = i < n ? label_entry(label[i], 0, false, 0) : 0;
	for (unsigned int i = LABEL_WORDS; i < n; i++)
		labels_add_more(word, i - LABEL_WORDS, label[i]);
}

#endif
