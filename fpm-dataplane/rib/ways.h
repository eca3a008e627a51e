/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ways of slots: the interfaces by which their next hops leave, for the check of sources
 * (fib/urpf.h). [rib]
 */
#ifndef RIB_WAYS_H
#define RIB_WAYS_H

#include <stdbool.h>
#include <stdint.h>

struct rib;
struct slot;

/* Store the ways of a slot for its present next hops, before a trie leads to it. */
void ways_publish(struct rib *rib, struct slot *s);
/* Return true if the published ways of a slot agree with its present next hops. */
bool ways_are_current(struct rib *rib, const struct slot *s);
/* Retire the block of a slot that forwarders may still read. */
void ways_drop(struct rib *rib, struct slot *s);
/* Reset the word of a free slot, to which no trie leads. */
void ways_clear(struct rib *rib, uint32_t slot);

#endif
