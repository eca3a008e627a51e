/* SPDX-License-Identifier: BSD-3-Clause */
/* Group words, as forwarders read them. [rib]. */
#ifndef RIB_WORDS_H
#define RIB_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bucket_member;
struct rib;
struct slot;

struct rib_words {
	bool due; /* a link or a neighbor changed: do not wait for the commit */
	size_t block_bytes;
	struct bucket_member *members; /* scratch */
	uint32_t cap_members;
};

/* Dirty slots take the ways that their ids have now; new adjacencies are asked for. */
void slots_bind(struct rib *rib);
/* What links and neighbors have changed is stored now, before more routes are looked at. */
void words_publish(struct rib *rib);
/* A commit: the words of all dirty slots. */
void words_publish_all(struct rib *rib);
/* Is what is published of a slot what its next hops, as they are now, ask for? */
bool slot_is_current(struct rib *rib, const struct slot *s);
/* Take the block that the present word points at out of use. */
void word_drop_block(struct rib *rib, struct slot *s);
/* The slot is free: no trie leads to it. */
void word_clear(struct rib *rib, uint32_t slot);
void words_free(struct rib *rib);

#endif
