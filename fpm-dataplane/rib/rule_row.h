/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of `show rules`. [rib] */
#ifndef RIB_RULE_ROW_H
#define RIB_RULE_ROW_H

struct msg_query;
struct rib;

/* Append the next rules to q->rows, and set q->done after the last one. */
void rule_rows(const struct rib *rib, struct msg_query *q);

#endif
