/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resync_request: which routes the walks of resync.c have to compare. [rib]
 *
 * A request for a walk that runs never starts it again: the walk continues to its end and
 * then reads the passed routes once more, so each route is read however often requests
 * come.
 */
#ifndef RIB_RESYNC_REQUEST_H
#define RIB_RESYNC_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/prefix.h"

#define RESYNC_INSIDE_MAX 16u

/* A walk over the prefixes in the trie of main that are inside a prefix. */
struct resync_inside {
	struct prefix of, at; /* at: the last prefix that the walk has compared */
	bool begun;
	bool again; /* the walk is due once more when it ends */
};

struct rib_resync {
	bool due;      /* some prefix may be missing or wrong in a trie: a walk runs */
	bool all;      /* the walk over all routes runs */
	uint32_t next; /* ... and compares this route next */
	uint32_t again_from; /* the next lap begins at this route; 0: none is due */
	uint64_t laps;       /* ended laps of this walk */
	bool nomem;          /* a trie lacks a route for lack of memory ... */
	uint64_t nomem_lap;  /* ... until this lap ends */
	struct resync_inside inside[RESYNC_INSIDE_MAX];
	uint32_t n_inside;
	uint32_t turn; /* the walk in `inside` that is next; n_inside: the walk over all */
};

/*
 * Request the walk over all routes from `number` on. Return the number of the lap at whose
 * end these routes are compared.
 */
uint64_t resync_from(struct rib_resync *s, uint32_t number);

/*
 * Request a walk over the routes inside a prefix. Return false if there are too many walks.
 */
bool resync_inside(struct rib_resync *s, const struct prefix *p);

/* Request the walk over all routes, because memory was out for a route. */
void resync_nomem(struct rib_resync *s);

/* Return true if the lap has ended. Lap 0 is before the first. */
static inline bool
resync_has_passed(const struct rib_resync *s, uint64_t lap)
{
	return s->laps >= lap;
}

#endif
