/* SPDX-License-Identifier: BSD-3-Clause */
/* The walk that brings tries to what the routes say. [rib]. */
#ifndef RIB_RESYNC_H
#define RIB_RESYNC_H

#include <stdbool.h>
#include <stdint.h>

struct rib;

struct rib_resync {
	bool due;     /* some prefix is not in a trie: walk and compare until all are */
	bool lacking; /* for want of memory, not because the trie is a new VRF's */
	uint32_t next;
};

/* Begin at route `number` or before it: a walk that is there already goes on. */
static inline void
resync_from(struct rib_resync *s, uint32_t number)
{
	if (!s->due || s->next > number)
		s->next = number;
	s->due = true;
}

bool resync_round(struct rib *rib); /* one slice; true: more at once */

#endif
