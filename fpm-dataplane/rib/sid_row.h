/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of `show sids`; dist/openapi.yaml has the keys. [rib] */
#ifndef RIB_SID_ROW_H
#define RIB_SID_ROW_H

struct msg_query;
struct rib;

/*
 * List the SIDs of all tables with a FIB, in no order. With a prefix, list the SIDs inside
 * it; with an address (q->longest), the SID of packets to it.
 */
void sids_slice(struct rib *rib, struct msg_query *q);

#endif
