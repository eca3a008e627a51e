/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vlan: frames of a port that has VLANs, before the walk, and tags that plain packets keep
 * during it.
 *
 * Private to fwd/.                                                                 [fwd-n]
 */
#ifndef FWD_VLAN_H
#define FWD_VLAN_H

#include "fwd/burst.h"

/* The interface a frame of interface `ifidx` belongs to; it loses the tags that say so. */
uint16_t fwd_enter(const struct fib *fib, uint16_t ifidx, struct rte_mbuf *m);
/*
 * burst_look() for a port with VLANs; b->bytes has what the NIC took off, too. Returns the
 * interface that all frames belong to, 0: they have to be told apart.
 */
uint16_t fwd_look(struct burst *b);
/*
 * A burst of a port with VLANs; `of` what fwd_look() said. Packets of several interfaces that
 * are alike go together as far as they are plain: walk_fast() sends those on, and returns
 * the others, a bit each, untouched but for their tags. walk() takes packets of one interface.
 */
void fwd_split(struct burst *b, uint16_t of, void (*walk)(struct burst *b),
	       uint64_t (*walk_fast)(struct burst *b));
/* A tag that only has a priority is taken off: its frame is an untagged one. */
bool fwd_priority_tag(struct burst *b, unsigned int i);

/* Take off the b->tag_bytes of an entry that is not plain. */
void fwd_untag(struct burst *b, unsigned int i);

/* They are plain no more: the rules have them from here on. */
static inline void
burst_to_slow(struct burst *b, uint64_t odd)
{
	odd &= b->fast4 | b->fast6;
	b->fast4 &= ~odd;
	b->fast6 &= ~odd;
	for (; odd != 0 && b->tag_bytes != 0; odd &= odd - 1)
		fwd_untag(b, (unsigned int)__builtin_ctzll(odd));
}

#endif
