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
	uint16_t number;     /* in fib->vrf */
	bool published;      /* for forwarders, after all routes of the table were in it */
	bool staged[2];      /* IPv4, IPv6: to be committed */
	bool large[2];       /* the trie has the large form */
	bool listed;         /* in rib->vrfs.staged */
	uint32_t grow_at[2]; /* a trie with more routes gets the large form */
	struct fib_vrf
		*fib; /* read by forwarders when published: replaced, never changed */
};

/* A VRF for whose FIB memory was out. */
struct vrf_retry {
	struct vrf_retry *next;
	uint64_t retry_ms; /* time of the next attempt */
	uint32_t table;
	uint16_t number;
	char name[16];
};

/* Parts of a VRF that are freed a grace period later. */
struct vrf_retired {
	struct vrf_retired *next;
	struct poptrie *trie[2];
	struct fib_vrf *fib;
};

struct rib_vrfs {
	struct vrf *v[FIB_VRF_MAX]; /* by number, from 1; NULL: none */
	uint32_t n, n_published;
	struct hidx by_table;
	struct vec32 staged;       /* numbers of VRFs with something to commit */
	struct vrf_retry *retries; /* VRFs for whose FIB memory was out */
};

/* Return the VRF of a table other than main, or NULL if the table has no FIB. */
struct vrf *vrf_find(const struct rib *rib, uint32_t table);

/*
 * Return the copies of a table's tries, and set *n to their number: all of main, one of a
 * VRF. Without a FIB, return NULL and set *n to 0.
 */
const struct fib_copy *rib_tries(const struct rib *rib, uint32_t table, unsigned int *n);

/* Incomplete tries: resync.c walks all routes until the tries are complete. */
struct rib_resync {
	bool due;   /* some prefix is missing or wrong in a trie: walk and compare */
	bool nomem; /* because memory was out, not because the trie is a new VRF's */
	uint32_t next;
};

/* Start the walk at route `number`. A walk that has not reached it yet continues. */
static inline void
resync_from(struct rib_resync *s, uint32_t number)
{
	if (!s->due || s->next > number)
		s->next = number;
	s->due = true;
}

void rib_vrf_event(struct rib *rib, const struct msg_vrf *m);
/* Try again to create the FIBs for which memory was out, once a second. */
void vrfs_retry(struct rib *rib);
/* Note that a route of the VRF's table was staged. */
void vrf_staged(struct rib *rib, struct vrf *vrf, uint8_t family);
/*
 * Commit the tries of VRFs. Return 0, or -ENOMEM: then the next commit tries the rest
 * again.
 */
int vrfs_commit(struct rib *rib);
/* Publish the FIBs that are not published yet, when all routes are in them. */
void vrfs_publish(struct rib *rib);
void vrf_retired_free(struct vrf_retired *list);
void vrfs_free(struct rib *rib);

#endif
