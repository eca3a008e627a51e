/* SPDX-License-Identifier: BSD-3-Clause */
/* Group words, as forwarders read them. [rib] */
#ifndef RIB_WORDS_H
#define RIB_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rib/index.h"

struct bucket_member;
struct rib;
struct slot;

struct rib_words {
	bool due;           /* a link or a neighbor changed: publish before the commit */
	uint64_t version;   /* of the last word published */
	size_t block_bytes; /* octets of the blocks of all slots */
	struct bucket_member *members; /* scratch */
	uint32_t cap_members;
	struct vec32 egress; /* scratch: the egress interfaces of a slot */
	bool mixed;          /* scratch: the paths are both by ports and by the kernel */
};

/* Bind dirty slots to the present next hops of their ids, and request new adjacencies. */
void slots_bind(struct rib *rib);
/* Publish the changes of links and neighbors, before more routes are handled. */
void words_publish(struct rib *rib);
/* Publish the words of all dirty slots, for a commit. */
void words_publish_all(struct rib *rib);
/* Return true if the published word of a slot agrees with its present next hops. */
bool slot_is_current(struct rib *rib, const struct slot *s);
/* Retire the block to which the present word points. */
void word_drop_block(struct rib *rib, struct slot *s);
/* Reset the word of a free slot, to which no trie leads. */
void word_clear(struct rib *rib, uint32_t slot);
void words_free(struct rib *rib);

#endif
