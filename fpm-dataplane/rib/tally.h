/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What zebra has in each table, counted. [rib]. Part of rib_impl.h, which includes it at its
 * end.
 */
#ifndef RIB_TALLY_H
#define RIB_TALLY_H

/* What zebra has in a table other than main. */
struct tally {
	uint32_t table;
	uint32_t n;     /* routes; 0: entry is free */
	uint32_t stale; /* of those not seen in session.gen */
	uint32_t gen;   /* session in which zebra spoke of the table last */
};

/* zebra says the route now; it has its new slot after that. */
void tally_said(struct rib *rib, struct route *r);
void tally_gone(struct rib *rib, const struct route *r);
/* zebra spoke of the table, if it has a route there. */
void tally_heard(struct rib *rib, uint32_t table);
/* Another session: all routes are stale. */
void tallies_renew(struct rib *rib);
/* NULL: zebra has no route there. */
const struct tally *tally_find(const struct rib *rib, uint32_t table);
/* Was it not replayed, though it is a VRF's? (While the replay runs: not yet.) */
bool tally_is_kept(const struct rib *rib, const struct tally *t);
void tallies_free(struct rib *rib);

#endif
