/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * egress: the interfaces by which the next hops of slots leave, for the check of sources
 * (fib/urpf.h). [rib]
 */
#ifndef RIB_EGRESS_H
#define RIB_EGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct rib;
struct slot;

/*
 * Store the egress interfaces of a slot for its present next hops, before a trie leads to
 * it.
 */
void egress_publish(struct rib *rib, struct slot *s);
/* Return true if the published interfaces of a slot agree with its present next hops. */
bool egress_is_current(struct rib *rib, const struct slot *s);
/* Retire the block of a slot that forwarders may still read. */
void egress_drop(struct rib *rib, struct slot *s);
/* Reset the word of a free slot, to which no trie leads. */
void egress_clear(struct rib *rib, uint32_t slot);

#endif
