/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables that have a FIB: main, and those of VRFs and of rules. [rib] */
#ifndef RIB_VRF_H
#define RIB_VRF_H

#include <stdbool.h>
#include <stdint.h>

#include "fib/fib.h"
#include "rib/index.h"

struct msg_vrf;
struct rib;

/*
 * A view of all routes of its table: the FIB that rules used before a VRF got the table. It
 * exists until no reader has a list of rules that names it.
 */
#define VIEW_WHOLE 46u

/*
 * A FIB of a table other than main: of a VRF of the kernel (numbers below FIB_VRF_MAX), of
 * a table that rules name, or a view of a table (view.c).
 */
struct vrf {
	uint16_t number; /* in fib->vrf */
	/*
	 * FIBs of rules: rules need the FIB; the published list names it; a reader may
	 * still use it.
	 */
	bool wanted, listed_now, in_use;
	uint64_t left; /* the round (rules.h) from which on no list names the FIB */
	/* A view of IPv4 (4) or IPv6 (6) routes, or VIEW_WHOLE; 0: all of the table. */
	uint8_t view;
	/*
	 * The number of the removed VRF that had the FIB. The published list, or a list
	 * that readers still have, may name the FIB by this number. 0: none.
	 */
	uint16_t former;
	bool former_listed;   /* the published list names `former` */
	uint64_t former_left; /* the round from which on no list names `former` */
	int32_t longer_than;  /* a view: it has only routes with longer prefixes; -1: all */
	struct prefix src;    /* a view: for packets from here; length 0: for all */
	bool hides;           /* a view: without the plain routes that Linux hides */
	uint32_t *chain;      /* a view: tables looked up in turn, its own table last */
	uint32_t n_chain;
	bool has_local;      /* a VRF: prefixes of table local were staged (local.h) */
	bool published;      /* for forwarders, after all routes of the table were in it */
	uint64_t lap;        /* lap of resync.h at whose end all routes are in the tries */
	bool staged[2];      /* IPv4, IPv6: to be committed */
	bool large[2];       /* the trie has the large form */
	bool listed;         /* in rib->vrfs.staged */
	uint32_t grow_at[2]; /* a trie with more routes gets the large form */
	struct fib_vrf
		*fib; /* read by forwarders when published: replaced, never changed */
};

/* A VRF whose FIB could not be allocated; vrfs_retry() tries again. */
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
	struct vrf *v[FIB_NUMBERS]; /* by number, from 1; NULL: none */
	/* FIBs in v[]: all; published ones; FIBs for rules */
	uint32_t n, n_published, n_for_rules;
	struct vec32 views; /* numbers of the views */
	/* the search for a free number of rules begins at FIB_VRF_MAX + next */
	uint16_t next;
	struct hidx by_table;
	struct vec32 staged;       /* numbers of VRFs with something to commit */
	struct vrf_retry *retries; /* VRFs whose FIB could not be allocated */
	bool lack_local;           /* some VRF has `has_local` false */
	bool told;                 /* fib->vrfs_told is set */
	bool table_ended;          /* a table lost its FIB: see sid_number.c */
};

/* Return the FIB of a table other than main, or NULL if the table has none. */
struct vrf *vrf_find(const struct rib *rib, uint32_t table);
/* Set fib->vrfs_told when the VRFs have the routes that they had before the start. */
void vrfs_check_told(struct rib *rib);
/* Return true if a VRF of the kernel has the table. */
bool table_is_of_vrf(const struct rib *rib, uint32_t table);
/*
 * Return the number of the VRF of a table, 0 for table main; FIB_VRF_NONE: it is of no VRF.
 */
uint16_t vrf_of_table(const struct rib *rib, uint32_t table);

/*
 * Return the copies of a table's tries, and set *n to their number: table main has a copy
 * for each NUMA node or one in all (memory.fib-copies), a VRF has one. Without a FIB,
 * return NULL and set *n to 0.
 */
const struct fib_copy *rib_tries(const struct rib *rib, uint32_t table, unsigned int *n);

/* Return true if the FIB belongs to no VRF of the kernel. */
static inline bool
vrf_is_for_rules(const struct vrf *vrf)
{
	return vrf->number >= FIB_VRF_MAX;
}

/* Return true if the view has routes of the family. */
static inline bool
view_has_family(const struct vrf *view, uint8_t family)
{
	return view->view == family || (view->view == VIEW_WHOLE && family_is_ip(family));
}

/*
 * Create a FIB for rules: of a table, or with `view` (4 or 6) a view, whose members the
 * caller fills. Return NULL if memory or numbers are exhausted.
 */
struct vrf *vrf_for_rules(struct rib *rib, uint32_t table, uint8_t view);
/*
 * Turn the FIB of a VRF that is removed into a FIB for rules, with a new number. Forwarders
 * find it by both numbers until vrf_drop_former(). Return false if no number is free.
 */
bool vrf_give_to_rules(struct rib *rib, struct vrf *vrf);
void vrf_drop_former(struct rib *rib, struct vrf *vrf);
/* Unpublish the FIB, and free it after the grace period. */
void vrf_end(struct rib *rib, struct vrf *vrf);
void rib_vrf_event(struct rib *rib, const struct msg_vrf *m);
/* Try once a second to create the FIBs that could not be allocated. */
void vrfs_retry(struct rib *rib);
/* Mark the trie of a family as changed: the next commit includes it. */
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
