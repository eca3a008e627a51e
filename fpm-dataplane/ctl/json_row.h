/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * json_row: rows of JSON, as the daemon sends them and as fpmctl --json writes them.
 */
#ifndef CTL_JSON_ROW_H
#define CTL_JSON_ROW_H

#include <jansson.h>
#include <stdbool.h>

/* Members of a row; 0, "" and false when they are missing or of another type. */
long long row_int(const json_t *row, const char *key);
double row_real(const json_t *row, const char *key);
const char *row_str(const json_t *row, const char *key);
bool row_true(const json_t *row, const char *key);
bool row_has(const json_t *row, const char *key); /* and it is not null */

/* Append the row to the array `rows`: an on_row of conn_ask() that keeps all. */
bool rows_keep(const json_t *row, const char *text, void *rows);

/*
 * All texts in it, for a table: names of interfaces have any octet, and what a terminal obeys
 * is for none. Rows of conn_ask() and its like are so already.
 */
void rows_harmless(json_t *value);

/* A value of a row that is made here: null for "" and for what is below 0. */
json_t *text_or_null(const char *text);
json_t *number_or_null(int n);

/*
 * Print one JSON array to stdout, row by row: the `n`-th of its rows, from 0 on, as `text`; then
 * its end, after `n` rows in all.
 */
void json_row_print(unsigned long long n, const char *text);
void json_rows_end(unsigned long long n);

/* Print a value to stdout, on a line. */
void json_print(const json_t *json);

#endif
