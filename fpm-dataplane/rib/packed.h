/* SPDX-License-Identifier: BSD-3-Clause */
/* Routes for `fpmctl audit`: one row for many prefixes. [rib] */
#ifndef RIB_PACKED_H
#define RIB_PACKED_H

struct msg_query;
struct rib;

void packed_slice(struct rib *rib, struct msg_query *q);

#endif
