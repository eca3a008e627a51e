/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fpmctl: asks the daemon on its control socket and shows the answer. Knows the protocol
 * (base/rows.md) and the keys of rows (dist/openapi.yaml), nothing of the daemon's insides.
 */
#ifndef CTL_CTL_H
#define CTL_CTL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "ctl/json_row.h"
#include "ctl/text.h"

#define CTL_SOCKET "/run/fpm-dataplane/control.sock"

/* Exit codes; scripts rely on them. */
enum {
	CTL_OK,
	CTL_NO_DAEMON,
	CTL_USAGE,
	CTL_NOT_FOUND,
	CTL_DIFFERENT = CTL_NOT_FOUND,
	CTL_DROPPED = CTL_NOT_FOUND,
	CTL_FAILED = CTL_NOT_FOUND,
};

/* Options of the command line. */
struct options {
	const char *socket;
	bool json;
	int family;              /* 0: both */
	double watch_s, rates_s; /* 0: not */
	bool repair, dry_run, force;
	const char *vtysh, *file; /* NULL: not given */
};

/* How a command (NULL: any) is used, on stderr; then also which word it was. CTL_USAGE. */
int usage(const char *command);
int unexpected(const char *word, const char *command);
/* The same, with the word that was `meant` (NULL: nobody knows). */
int unexpected_but(const char *word, const char *meant, const char *command);
/* May `word` be `known`, cut short or misspelt? (ctl/near.c) */
bool is_near(const char *word, const char *known);

/* The exit code when all has been written to stdout, or (`error`, an errno) could not be. */
int flushed(int rc, int error);

/* Commands: words after their name to an exit code. And what they say of themselves. */
int show_run(const struct options *opt, int n, char **word);
void show_help(FILE *out);
/* For the completion, on a line: what can be shown; of `what` what may follow the word `last`. */
void show_words(FILE *out, const char *what, const char *last);
/* The same of the daemon: names of the rows of `what`, or `reasons` for which packets leave. */
int show_names(const struct options *opt, const char *what);
int config_run(const struct options *opt, int n, char **word);
void config_help(FILE *out);
int port_run(const struct options *opt, int n, char **word);
void port_help(FILE *out);
int set_run(const struct options *opt, int n, char **word);
void set_help(FILE *out);
void set_words(FILE *out, bool classes); /* those, or what is set of one, on a line */
void audit_help(FILE *out);
int device_run(const struct options *opt, int n, char **word);
void device_help(FILE *out);
int restart_run(const struct options *opt, int n, char **word);
int hold_run(const struct options *opt, int n, char **word);
void device_words(FILE *out); /* addresses of NICs, on a line */

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
 * Compare zebra (asked by the command `vtysh`; NULL: find out), RIB and FIB; print what
 * differs, with `repair` have it mended. Returns an exit code: CTL_DIFFERENT when anything differed.
 */
int audit_run(const char *socket, const char *vtysh, bool repair, bool json);

/*
 * Examine the machine; `words` are names of checks, none: all of them. `vtysh` NULL: find out.
 * Returns an exit code: CTL_FAILED when a check failed.
 */
void doctor_help(FILE *out);
void doctor_words(FILE *out); /* the names, on a line */
int doctor_run(const char *socket, const char *vtysh, bool json, int n, char **word);

/*
 * The command that asks the zebra where the daemon's TAPs are: vtysh, with what reaches its
 * own files. We are in its network namespace from then on. Valid until the next call.
 */
const char *doctor_vtysh(const char *socket);

/* What would become of a packet that the words describe. Returns an exit code. */
int explain_run(const char *socket, bool json, int n, char **word);

/*
 * What becomes of live packets: shown (trace), or as pcapng to `file` ("-", NULL: stdout).
 * Returns an exit code.
 */
int watch_run(const char *socket, bool capture, const char *file, bool json, int n,
	      char **word);

/* A row of either, a line a stage. */
void walk_print(const json_t *row);
/* What to look at first when packets leave for this reason; NULL: nothing. */
const char *advice(const char *reason);

/* How one kind of rows is shown to people. All print to stdout. */
struct view {
	const char *show;   /* "routes" */
	void (*head)(void); /* before the first row; NULL: nothing */
	void (*row)(const json_t *row);
};
const struct view *view_find(const char *show);

/* The channel, memory and version, each one row (ctl/print_status.c). */
void status_fpm(const json_t *row);
void status_memory(const json_t *row);
void status_version(const json_t *row);
/* The members of a port that is a bond, behind the rest of its line. */
void status_bond(FILE *out, const json_t *bond);

#endif
