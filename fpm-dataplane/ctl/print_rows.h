/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * print_rows: rows as text on stdout. Tables (print_table.c), paragraphs about a state
 * (print_status.c), sessions of BFD (print_bfd.c), programs of interfaces (print_hook.c),
 * sFlow (print_sflow.c), fpm-flowspec (print_flowspec.c), SIDs (print_sid.c), the path of
 * a packet (print_walk.c), and advice (advice.c).
 */
#ifndef CTL_PRINT_ROWS_H
#define CTL_PRINT_ROWS_H

#include <jansson.h>
#include <stdio.h>

/* The table of one kind of rows. */
struct view {
	const char *show;   /* "routes" */
	void (*head)(void); /* prints the heading; NULL: none */
	void (*row)(const json_t *row);
};
const struct view *view_find(const char *show);
/* Return the function that prints a row requested by its name; NULL: print the table. */
void (*view_one(const char *show))(const json_t *row);

/* Print the row of `show fpm`, `show kernel`, `show memory` or `show version`. */
void status_fpm(const json_t *row);
void status_kernel(const json_t *row);
void status_memory(const json_t *row);
void status_version(const json_t *row);
/* Print the sessions of BFD: a table, or all facts about one session. */
void bfd_table_head(void);
void bfd_table_row(const json_t *row);
void bfd_session_print(const json_t *row);
/* Print the table of SIDs. */
void sid_table_head(void);
void sid_table_row(const json_t *row);
/* Print the program of an interface. */
void hook_print_row(const json_t *row);
/* Print the state of fpm-flowspec. */
void flowspec_print_row(const json_t *row);
/* Print a row of sFlow. */
void sflow_print_row(const json_t *row);
/* Print the members of a bond, after the rest of the port's line. */
void status_bond(FILE *out, const json_t *bond);

/* Print a row of explain or trace, one line per stage. */
void walk_print(const json_t *row);

/* Return advice about packets that leave the fast path for this reason; NULL: none. */
const char *advice(const char *reason);

#endif
