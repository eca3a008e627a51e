/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vlan: separate the frames of a port that has VLANs, before the stages, and handle the
 * tags that fast-path packets keep until rewrite.
 *
 * Private to fwd/.                                                              [fwd-n]
 */
#ifndef FWD_VLAN_H
#define FWD_VLAN_H

#include "fwd/burst.h"

/*
 * Return the interface that a frame received by interface `ifidx` belongs to, and remove
 * the tags that select it.
 */
uint16_t fwd_enter(const struct fib *fib, uint16_t ifidx, struct rte_mbuf *m);
/*
 * Read the buffers of a burst of a port with VLANs, as burst_look() does. b->bytes includes
 * stripped tags. Returns the interface that all frames belong to; 0: fwd_split() has to
 * separate them.
 */
uint16_t fwd_look(struct burst *b);
/*
 * Handle a burst of a port with VLANs; `of` is the result of fwd_look(). walk_fast() gets
 * packets of several interfaces that are alike. It sends the fast-path packets, and returns
 * a bit for each other packet, of which it has changed only the tags. walk() gets packets
 * of one interface.
 */
void fwd_split(struct burst *b, uint16_t of, void (*walk)(struct burst *b),
	       uint64_t (*walk_fast)(struct burst *b));
/*
 * Remove a tag that has only a priority. Returns true if the frame had one; it is untagged
 * now.
 */
bool fwd_priority_tag(struct burst *b, unsigned int i);

/* Remove the tags (b->tag_bytes octets) of an entry that is not on the fast path. */
void fwd_untag(struct burst *b, unsigned int i);

/* Move packets from the fast path to the slow path. */
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
