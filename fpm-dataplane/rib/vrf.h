/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tables that have a FIB: main, and those of VRFs. [rib]. Part of rib_impl.h, which includes it
 * at its end.
 */
#ifndef RIB_VRF_H
#define RIB_VRF_H

struct vrf {
	uint16_t number; /* in fib->vrf */
	bool published;  /* forwarders have it: all routes of the table were in it once */
	bool staged[2];  /* IPv4, IPv6: to be committed */
	bool large[2];   /* the trie has outgrown the small form */
	bool listed;     /* in rib->vrf_staged */
	uint32_t grow_at[2]; /* with more routes than these it is time for a large one */
	struct fib_vrf
		*fib; /* read by forwarders when published: replaced, never changed */
};

/* A VRF whose FIB found no memory. */
struct vrf_wish {
	struct vrf_wish *next;
	uint64_t again_ms; /* when it is tried next */
	uint32_t table;
	uint16_t number;
	char name[16];
};

/* What a VRF leaves behind, freed a grace period later. */
struct vrf_grave {
	struct vrf_grave *next;
	struct poptrie *trie[2];
	struct fib_vrf *fib;
};

/* The VRF of a table that is not main; NULL: it has no FIB. */
struct vrf *vrf_find(const struct rib *rib, uint32_t table);

/* The copies of the tries of a table: of main all, of a VRF one, else none (*n is 0). */
const struct fib_copy *rib_tries(const struct rib *rib, uint32_t table, unsigned int *n);

void rib_vrf_event(struct rib *rib, const struct msg_vrf *m);
/* Those whose FIB found no memory try again, once a second. */
void vrfs_retry(struct rib *rib);
/* A route of its table was staged. */
void vrf_staged(struct rib *rib, struct vrf *vrf, uint8_t family);
/* Returns 0 or -ENOMEM: then what is left is tried again by the next commit. */
int vrfs_commit(struct rib *rib);
/* All routes are in: forwarders may have it. */
void vrfs_publish(struct rib *rib);
void vrf_bury(struct vrf_grave *graves);
void vrfs_free(struct rib *rib);

#endif
