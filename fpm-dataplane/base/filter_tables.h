/* SPDX-License-Identifier: BSD-3-Clause */
/* filter_tables: the list of the nft tables that the forwarders obey, as one text. */
#ifndef BASE_FILTER_TABLES_H
#define BASE_FILTER_TABLES_H

#include <stdbool.h>

#define FILTER_TABLES_MAX  4
#define FILTER_TABLE_TEXT  264 /* octets of "FAMILY NAME", its terminator included */
#define FILTER_TABLES_TEXT 512 /* octets of a list "inet a, inet b" */

/*
 * Copy the first table of a list to `table`. Returns the rest of the list, which may be "",
 * or NULL if the list is empty. [any thread]
 */
const char *filter_tables_next(const char *list, char table[FILTER_TABLE_TEXT]);

/* Return true if a list has the table. [any thread] */
bool filter_tables_has(const char *list, const char *table);

#endif
