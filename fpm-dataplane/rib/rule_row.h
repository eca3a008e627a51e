/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of `show rules`. [rib] */
#ifndef RIB_RULE_ROW_H
#define RIB_RULE_ROW_H

#include <jansson.h>

struct msg_query;
struct prefix;
struct rib;

/* Append the next rules to q->rows, and set q->done after the last one. */
void rule_rows(const struct rib *rib, struct msg_query *q);
/* Add to the row of a route the source or the TOS of the packets that use it (source.h). */
void row_add_condition(json_t *row, const struct prefix *src);

#endif
