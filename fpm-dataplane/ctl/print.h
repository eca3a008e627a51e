/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * print: rows for people, on stdout. Tables (print_table.c), paragraphs about the state of a
 * thing (print_status.c), the way of one packet (print_walk.c), and advice (advice.c).
 */
#ifndef CTL_PRINT_H
#define CTL_PRINT_H

#include <jansson.h>
#include <stdio.h>

/* How one kind of rows is shown to people. */
struct view {
	const char *show;   /* "routes" */
	void (*head)(void); /* before the first row; NULL: nothing */
	void (*row)(const json_t *row);
};
const struct view *view_find(const char *show);

/* The channel, memory and version, each one row. */
void status_fpm(const json_t *row);
void status_memory(const json_t *row);
void status_version(const json_t *row);
/* The members of a port that is a bond, behind the rest of its line. */
void status_bond(FILE *out, const json_t *bond);

/* A row of explain or trace, a line a stage. */
void walk_print(const json_t *row);

/* What to look at first when packets leave for this reason; NULL: nothing. */
const char *advice(const char *reason);

#endif
