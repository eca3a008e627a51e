/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn: send a request to the daemon over its control socket. The protocol is in
 * base/rows.md, the keys of rows are in dist/openapi.yaml.
 */
#ifndef CTL_CONN_H
#define CTL_CONN_H

#include <jansson.h>
#include <stdbool.h>

#include "ctl/json_row.h"

/*
 * Send `request` to the daemon on `path` and call on_row(row, text, ctx) for each row,
 * where `text` is the row as received. on_row (NULL: ignore rows) returns false to stop
 * early. Prints errors to stderr. Returns an exit code.
 */
int conn_ask(const char *path, const json_t *request,
	     bool (*on_row)(const json_t *row, const char *text, void *ctx), void *ctx);

/*
 * Send a request as conn_ask() does, to a daemon that may not run or is about to end.
 * Prints no errors.
 */
int conn_try(const char *path, const json_t *request,
	     bool (*on_row)(const json_t *row, const char *text, void *ctx), void *ctx);

/* Set how long later calls wait for a silent daemon. The default is half a minute. */
void conn_patience(unsigned int ms);

/*
 * Return true if a process listens on `path`; otherwise errno is the reason. Prints
 * nothing.
 */
bool conn_is_there(const char *path);

/*
 * Send a request as conn_ask() does, for an answer that may pause for hours. SIGINT and
 * SIGTERM end it with CTL_OK.
 */
int conn_watch(const char *path, const json_t *request,
	       bool (*on_row)(const json_t *row, const char *text, void *ctx), void *ctx);

/*
 * Send a request as conn_ask() does, and append all rows to `rows` (NULL: ignore rows).
 * Steals `request`.
 */
int conn_fetch(const char *path, json_t *request, json_t *rows);

#endif
