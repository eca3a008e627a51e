/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of `fpmctl show filter`. Private to filter/. */
#ifndef FILTER_ROWS_H
#define FILTER_ROWS_H

#include "base/msg.h"
#include "filter/thread.h"

/* Answer a query: append rows, move the cursor, set `done`.                     [filter] */
void filter_rows(const struct filter *f, struct msg_query *q);

#endif
