/* SPDX-License-Identifier: BSD-3-Clause */
/* Compare the FIB with the RIB. [rib] */
#ifndef RIB_AUDIT_H
#define RIB_AUDIT_H

struct msg_query;
struct rib;

void audit_slice(struct rib *rib, struct msg_query *q);
void audit_break(struct rib *rib, struct msg_query *q);

#endif
