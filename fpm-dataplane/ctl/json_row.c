/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Read members of JSON rows, and write arrays of rows to stdout for --json. No state; no
 * sockets.
 */
#include "ctl/json_row.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

/* --- read ----------------------------------------------------------------------------- */

long long
row_int(const json_t *row, const char *key)
{
	return json_integer_value(json_object_get(row, key));
}

double
row_real(const json_t *row, const char *key)
{
	return json_number_value(json_object_get(row, key));
}

const char *
row_str(const json_t *row, const char *key)
{
	const char *s = json_string_value(json_object_get(row, key));

	return s != NULL ? s : "";
}

const char *
item_str(const json_t *item)
{
	return json_is_string(item) ? json_string_value(item) : "";
}

bool
row_true(const json_t *row, const char *key)
{
	return json_is_true(json_object_get(row, key));
}

bool
row_has(const json_t *row, const char *key)
{
	const json_t *v = json_object_get(row, key);

	return v != NULL && !json_is_null(v);
}

const json_t *
row_named(const json_t *rows, const char *name)
{
	const json_t *row;
	size_t i;

	json_array_foreach (rows, i, row)
		if (strcmp(row_str(row, "name"), name) == 0)
			return row;
	return NULL;
}

const json_t *
row_of_ifindex(const json_t *rows, long long ifindex)
{
	const json_t *row;
	size_t i;

	json_array_foreach (rows, i, row)
		if (row_int(row, "ifindex") == ifindex)
			return row;
	return NULL;
}

bool
rows_keep(const json_t *row, const char *text, void *rows)
{
	return json_array_append(rows, (json_t *)(uintptr_t)row) == 0;
}

void
rows_harmless(json_t *value)
{
	const char *text = json_string_value(value);
	char *clean;
	json_t *member;
	const char *key;
	size_t i;

	if (json_is_object(value))
		json_object_foreach (value, key, member)
			rows_harmless(member);
	json_array_foreach (value, i, member)
		rows_harmless(member);
	if (text == NULL || (clean = strdup(text)) == NULL)
		return;
	log_harmless(clean);
	json_string_set_nocheck(value, clean);
	free(clean);
}

/* --- make ----------------------------------------------------------------------------- */

json_t *
text_or_null(const char *text)
{
	json_t *json = text[0] != '\0' ? json_string(text) : json_null();
	char *clean;

	if (json != NULL)
		return json;
	/* Names of interfaces may be malformed UTF-8. */
	clean = strdup(text);
	if (clean == NULL)
		abort();
	log_harmless(clean);
	json = json_string(clean);
	free(clean);
	return json;
}

json_t *
number_or_null(int n)
{
	return n >= 0 ? json_integer(n) : json_null();
}

/* --- write ---------------------------------------------------------------------------- */

void
json_row_print(unsigned long long n, const char *text)
{
	printf("%s%s", n == 0 ? "[" : ",\n", text);
}

void
json_rows_end(unsigned long long n)
{
	puts(n == 0 ? "[]" : "]");
}

void
json_print(const json_t *json)
{
	json_dumpf(json, stdout, JSON_COMPACT);
	putchar('\n');
}
