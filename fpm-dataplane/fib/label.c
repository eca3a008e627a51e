/* SPDX-License-Identifier: BSD-3-Clause */
/* Walk over the labels of a packet. Any reader; no state. */
#include "fib/label.h"

#include "base/inet.h"

#define HASHED_MAX 4 /* labels, as in Linux */

uint32_t
fib_label_hash(const struct fib *fib, const uint8_t *p, unsigned int room)
{
	uint64_t h = fib->seed;
	unsigned int hashed = 0;
	bool entropy = false;

	while (room >= LABEL_BYTES && hashed < HASHED_MAX) {
		uint32_t entry = get_be32(p), label = label_of(entry);

		p += LABEL_BYTES;
		room -= LABEL_BYTES;
		if (label >= LABEL_SPECIAL_END || entropy) {
			h = mix64(h ^ label);
			hashed++;
		}
		if (entropy)
			break;
		entropy = label == LABEL_ENTROPY_INDICATOR;
		if (!label_is_bottom(entry))
			continue;
		if (room >= 20 && p[0] >> 4 == 4)
			h ^= flow_hash(p, room, 4, fib->seed);
		else if (room >= 40 && p[0] >> 4 == 6)
			h ^= flow_hash(p, room, 6, fib->seed);
		break;
	}
	return (uint32_t)(mix64(h) >> 32);
}

/* Return the family of the packet at `p`, by its version; 0: it is no IP packet. */
static uint8_t
payload_family(const uint8_t *p, unsigned int room)
{
	uint8_t version = room == 0 ? 0 : p[0] >> 4;

	return family_is_ip(version) ? version : 0;
}

/*
 * Handle a label below 16. Return its path, or PATH_NONE with a reason. *skip: the number
 * of labels that follow it and belong to it.
 */
static fib_path
special_label(uint32_t label, struct label_walk *walk, unsigned int *skip)
{
	switch (label) {
	case LABEL_IPV4_EXPLICIT_NULL:
	case LABEL_IPV6_EXPLICIT_NULL:
		return PATH(PATH_VRF, 0);
	case LABEL_ENTROPY_INDICATOR:
		*skip = 1;
		return PATH(PATH_VRF, 0);
	case LABEL_ROUTER_ALERT:
	case LABEL_GAL:
	case LABEL_OAM_ALERT:
		walk->reason = PUNT_not_ip;
		return PATH(PATH_NONE, 0);
	default:
		walk->reason = DROP_mpls_reserved;
		return PATH(PATH_NONE, 0);
	}
}

/* Return the path of an ordinary label, or PATH_NONE with a reason. */
static fib_path
label_path(const struct fib *fib, uint32_t label, const uint8_t *p, unsigned int room,
	   struct label_walk *walk)
{
	uint32_t group = atomic_load_explicit(&fib->label[label], memory_order_consume);
	uint64_t word;

	if (group == 0) {
		walk->reason = DROP_mpls_no_label;
		return PATH(PATH_NONE, 0);
	}
	word = atomic_load_explicit(&fib->group[group], memory_order_consume);
	return group_word_path(
		word, group_word_is_block(word) ? fib_label_hash(fib, p, room) : 0);
}

/* Take the path, the TTL and the TC of a label. *skip: as in special_label(). */
static void
entry_take(const struct fib *fib, uint32_t entry, const uint8_t *p, unsigned int room,
	   struct label_walk *walk, unsigned int *skip)
{
	uint8_t of_kernel = atomic_load_explicit(&fib->label_ttl, memory_order_relaxed);
	uint32_t label = label_of(entry);
	uint8_t ttl = label_ttl(entry);

	walk->tc = label_tc(entry);
	walk->ttl = ttl < walk->ttl ? ttl : walk->ttl;
	walk->carried = ttl < walk->carried ? ttl : walk->carried;
	walk->path = label < LABEL_SPECIAL_END ? special_label(label, walk, skip)
					       : label_path(fib, label, p, room, walk);
	if (path_kind(walk->path) != PATH_ENCAP &&
	    !label_carries_ttl(walk->path, of_kernel))
		walk->carried = UINT8_MAX;
}

void
fib_label_walk(const struct fib *fib, const uint8_t *p, unsigned int room,
	       struct label_walk *walk)
{
	const uint8_t *first = p;
	unsigned int all = room, pops = 0, skip = 0;

	*walk = (struct label_walk){
		.ttl = UINT8_MAX, .carried = UINT8_MAX, .reason = N_REASON};
	do {
		uint32_t entry;

		if (room < LABEL_BYTES) {
			walk->reason = DROP_mpls_malformed;
			return;
		}
		entry = get_be32(p);
		p += LABEL_BYTES;
		room -= LABEL_BYTES;
		walk->n++;
		walk->bottom = label_is_bottom(entry);
		/*
		 * RFC 6790, 4.2: the TTL of an entropy label is 0, its TC has no meaning.
		 */
		if (skip > 0)
			skip--;
		else if (walk->n > 1 && label_of(entry) == LABEL_ENTROPY_INDICATOR)
			skip = 1; /* it and the next label belong to the label above */
		else
			entry_take(fib, entry, first, all, walk, &skip);
		if (skip > 0 && walk->bottom) /* the entropy label is missing */
			walk->reason = DROP_mpls_malformed;
		if (walk->reason != N_REASON)
			return;
		if (walk->bottom)
			walk->payload = payload_family(p, room);
		if (path_kind(walk->path) != PATH_VRF || walk->bottom)
			break;
		pops += skip == 0;
	} while (pops < FIB_POPS_MAX);
	if (path_kind(walk->path) == PATH_VRF && !walk->bottom)
		walk->reason = DROP_mpls_stack;
	else if (!walk->bottom && room < LABEL_BYTES)
		/* The next label, which gets the TTL, is missing. */
		walk->reason = DROP_mpls_malformed;
	else if (walk->bottom && walk->payload == 0 && path_kind(walk->path) != PATH_ENCAP)
		walk->reason = DROP_mpls_payload;
}
