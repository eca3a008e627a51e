/* SPDX-License-Identifier: BSD-3-Clause */
/* json_row: JSON rows, as the daemon sends them and as fpmctl --json writes them. */
#ifndef CTL_JSON_ROW_H
#define CTL_JSON_ROW_H

#include <jansson.h>
#include <stdbool.h>

/* Return a member of a row; 0, "" or false if it is missing or has another type. */
long long row_int(const json_t *row, const char *key);
double row_real(const json_t *row, const char *key);
const char *row_str(const json_t *row, const char *key);
bool row_true(const json_t *row, const char *key);
/* Return the text of a member of an array; "" if it has another type. */
const char *item_str(const json_t *item);
bool row_has(const json_t *row, const char *key); /* the member exists and is not null */

/*
 * Return the first row of an array whose name, or whose ifindex, is this; NULL: none. Names
 * and numbers of interfaces are each in one row.
 */
const json_t *row_named(const json_t *rows, const char *name);
const json_t *row_of_ifindex(const json_t *rows, long long ifindex);

/* Append the row to the array `rows`: an on_row of conn_ask() that keeps all rows. */
bool rows_keep(const json_t *row, const char *text, void *rows);

/*
 * Make all texts of a value safe for a terminal: names of interfaces may have any octet.
 * Rows of conn_ask() and similar functions are safe already.
 */
void rows_harmless(json_t *value);

/* Make a member of a row: null for "" and for numbers below 0. */
json_t *text_or_null(const char *text);
json_t *number_or_null(int n);

/*
 * Print a JSON array to stdout, row by row: json_row_print() prints row number `n`, from 0,
 * with `text`; json_rows_end() prints the end after `n` rows.
 */
void json_row_print(unsigned long long n, const char *text);
void json_rows_end(unsigned long long n);

/* Print a value to stdout on a line. */
void json_print(const json_t *json);

#endif
