/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * members: fill a set of a ruleset, and change it while forwarders use it.
 *
 * A set of many addresses without values is a Poptrie, which adds or removes an element in
 * some microseconds. Any other set is a sorted array, which a change replaces as a whole.
 * In both cases a reader finds for each key the result before the change or after it.
 * [filter]
 */
#ifndef RULESET_MEMBERS_H
#define RULESET_MEMBERS_H

#include "ruleset/ruleset.h"

/* An element with its keys. */
struct ruleset_member {
	const uint8_t *key, *key_end; /* key_end: the key itself, if it is no range */
	struct ruleset_element e;
};

/* One step of a change. An added element replaces an element with the same keys. */
struct ruleset_change {
	struct ruleset_member m;
	bool leaves; /* the element is removed; else it is added */
};

/* The function by which a set frees memory that readers may still have. */
struct ruleset_reclaim {
	/* Call fn(owner, memory) after a grace period; NULL: there are no readers. */
	void (*defer)(void *ctx, void (*fn)(void *owner, void *memory), void *memory);
	void *ctx;
};

/*
 * Fill a new set; `reclaim` lives as long as the set. The order of `list` changes. The kind
 * of the set becomes SET_PREFIXES if it has many addresses. Returns 0 or -ENOMEM.
 */
int ruleset_members_fill(struct ruleset_set *s, struct ruleset_member *list, uint32_t n,
			 const struct ruleset_reclaim *reclaim);

/*
 * Make the changes in their order, and copy their keys. Elements that have expired at
 * `now`, in ticks, are removed. Returns 0; -ENOMEM: the set may
 * have a part of the changes, so build the ruleset again; -ERANGE: nothing changed, because
 * the kind of the set is not suitable for so many elements.
 */
int ruleset_members_change(struct ruleset_set *s, const struct ruleset_change *list,
			   uint32_t n, uint64_t now, const struct ruleset_reclaim *reclaim);

/*
 * Free a ruleset after a grace period. Use it for a published ruleset, and also for
 * an unpublished ruleset whose sets have memory to reclaim.
 */
void ruleset_free_later(struct ruleset *r, const struct ruleset_reclaim *reclaim);

/* Free the elements of a set that no thread reads. */
void ruleset_members_free(struct ruleset_set *s);

#endif
