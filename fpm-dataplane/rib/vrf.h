/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables that have a FIB: main, and those of VRFs. [rib]. */
#ifndef RIB_VRF_H
#define RIB_VRF_H

#include <stdbool.h>
#include <stdint.h>

#include "fib/fib.h"
#include "rib/index.h"

struct msg_vrf;
struct rib;

struct vrf {
	uint16_t number; /* in fib->vrf */
	bool published;  /* forwarders have it: all routes of the table were in it once */
	bool staged[2];  /* IPv4, IPv6: to be committed */
	bool large[2];   /* the trie has outgrown the small form */
	bool listed;     /* in rib->vrfs.staged */
	uint32_t grow_at[2]; /* with more routes than these it is time for a large one */
	struct fib_vrf
		*fib; /* read by forwarders when published: replaced, never changed */
};

/* A VRF whose FIB found no memory. */
struct vrf_retry {
	struct vrf_retry *next;
	uint64_t retry_ms; /* when it is tried next */
	uint32_t table;
	uint16_t number;
	char name[16];
};

/* What a VRF leaves behind, freed a grace period later. */
struct vrf_retired {
	struct vrf_retired *next;
	struct poptrie *trie[2];
	struct fib_vrf *fib;
};

struct rib_vrfs {
	struct vrf *v[FIB_VRF_MAX]; /* by number, from 1; NULL: none */
	uint32_t n, n_published;
	struct hidx by_table;
	struct vec32 staged;       /* numbers of those with something to commit */
	struct vrf_retry *retries; /* those whose FIB found no memory */
};

/* The VRF of a table that is not main; NULL: it has no FIB. */
struct vrf *vrf_find(const struct rib *rib, uint32_t table);

/* The copies of the tries of a table: of main all, of a VRF one, else none (*n is 0). */
const struct fib_copy *rib_tries(const struct rib *rib, uint32_t table, unsigned int *n);

/* Tries that are incomplete: resync.c walks all routes until none is. */
struct rib_resync {
	bool due;   /* some prefix is not in a trie: walk and compare until all are */
	bool nomem; /* for want of memory, not because the trie is a new VRF's */
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

void rib_vrf_event(struct rib *rib, const struct msg_vrf *m);
/* Those whose FIB found no memory try again, once a second. */
void vrfs_retry(struct rib *rib);
/* A route of its table was staged. */
void vrf_staged(struct rib *rib, struct vrf *vrf, uint8_t family);
/* Returns 0 or -ENOMEM: then what is left is tried again by the next commit. */
int vrfs_commit(struct rib *rib);
/* All routes are in: forwarders may have it. */
void vrfs_publish(struct rib *rib);
void vrf_retired_free(struct vrf_retired *list);
void vrfs_free(struct rib *rib);

#endif
