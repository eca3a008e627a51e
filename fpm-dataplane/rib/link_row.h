/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rows about links whose routes Linux and forwarders use differently, for thread warn.
 * [rib]
 */
#ifndef RIB_LINK_ROW_H
#define RIB_LINK_ROW_H

struct msg_query;
struct rib;

/* Append a row for each such link to q->rows, and set q->done. base/msg.h has the keys. */
void link_rows(const struct rib *rib, struct msg_query *q);

#endif
