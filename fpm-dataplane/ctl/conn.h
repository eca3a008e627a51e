/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn: one request to the daemon over its control socket. Knows the protocol (base/rows.md) and
 * the keys of rows (dist/openapi.yaml), nothing of the daemon's insides.
 */
#ifndef CTL_CONN_H
#define CTL_CONN_H

#include <jansson.h>
#include <stdbool.h>

#include "ctl/json_row.h"

/*
 * Send `request` to the daemon on `path` and hand each row to on_row(row, text, ctx), where
 * `text` is the row as it came. on_row (NULL: rows are of no interest) returns false to stop
 * early. Says what went wrong on
 * stderr. Returns an exit code.
 */
int conn_ask(const char *path, const json_t *request,
	     bool (*on_row)(const json_t *row, const char *text, void *ctx), void *ctx);

/* The same for a daemon that may be away, or about to end: says nothing. */
int conn_try(const char *path, const json_t *request,
	     bool (*on_row)(const json_t *row, const char *text, void *ctx), void *ctx);

/* Does somebody listen on `path`? Says nothing; errno tells why nobody does. */
bool conn_is_there(const char *path);

/*
 * The same for an answer that may be silent for hours, and that SIGINT and SIGTERM end well:
 * then CTL_OK.
 */
int conn_watch(const char *path, const json_t *request,
	       bool (*on_row)(const json_t *row, const char *text, void *ctx), void *ctx);

/*
 * As conn_ask(), and append all rows to `rows` (NULL: they are of no interest). Steals
 * `request`.
 */
int conn_fetch(const char *path, json_t *request, json_t *rows);

#endif
