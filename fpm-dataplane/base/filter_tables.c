/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of the nft tables that the forwarders obey. */
#include "base/filter_tables.h"

#include <stdio.h>
#include <string.h>

const char *
filter_tables_next(const char *list, char table[FILTER_TABLE_TEXT])
{
	size_t n = strcspn(list, ",");

	if (list[0] == '\0')
		return NULL;
	snprintf(table, FILTER_TABLE_TEXT, "%.*s", (int)n, list);
	list += n;
	return list + strspn(list, ", ");
}

bool
filter_tables_has(const char *list, const char *table)
{
	char one[FILTER_TABLE_TEXT];

	while ((list = filter_tables_next(list, one)) != NULL)
		if (strcmp(one, table) == 0)
			return true;
	return false;
}
