/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cli: functions that all commands of fpmctl share: exit codes, options, the description
 * of a command, errors about words, and the end by a signal. Knows no command.
 */
#ifndef CTL_CLI_H
#define CTL_CLI_H

#include <stdbool.h>
#include <stdio.h>

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
	double watch_s, rates_s; /* seconds; 0: not given */
	bool repair, dry_run, force;
	const char *vtysh, *file; /* NULL: not given */
};

/* Options that only some commands have. */
#define OPT_REPAIR  1u
#define OPT_VTYSH   2u
#define OPT_FILE    4u
#define OPT_FAMILY  8u
#define OPT_DRY_RUN 16u
#define OPT_TIMES   32u
#define OPT_FORCE   64u
#define OPT_JSON    128u

/* A command: `fpmctl NAME WORDS`. The completion and the manual page also use these. */
struct command {
	const char *name, *words, *text;
	/* Run the command with the words after its name. Returns an exit code. */
	int (*run)(const struct options *opt, int n, char **word);
	unsigned int options; /* OPT_ bits that the command accepts */
	int file_word; /* index of a word that may be a file name, with any octet; 0: none */
	void (*help)(FILE *out); /* describe its words; NULL: the command has none */
	/*
	 * Print on a line the words that may follow these words; NULL: no word may follow.
	 */
	void (*complete)(FILE *out, int n, char **word);
};

/* --- wrong words ---------------------------------------------------------------------- */

/*
 * Print the usage of a command (NULL: of fpmctl) to stderr. The functions after cli_usage()
 * first print that a word is unexpected, has no value, or is given twice. All return
 * CTL_USAGE.
 */
int cli_usage(const struct command *c);
int cli_unexpected(const char *word, const struct command *c);
/* Print as cli_unexpected(), and suggest the word `meant` (NULL: none). */
int cli_unexpected_but(const char *word, const char *meant, const struct command *c);
int cli_no_value(const char *word, const struct command *c);
int cli_twice(const char *word, const struct command *c);

/* Return true if `word` may be `known`, shortened or misspelt. For hints only. */
bool word_is_near(const char *word, const char *known);

/* --- numbers -------------------------------------------------------------------------- */

/*
 * Numbers on the command line. A number with a sign, a unit, an exponent or blanks is
 * refused.
 */

/*
 * Parse a whole number. Returns false, and does not change *out, if `text` is no whole
 * number or is out of range.
 */
bool number_whole(const char *text, long long *out);

/*
 * Parse a decimal number such as "2" or "0.5". Returns false, and does not change *out, if
 * `text` is no decimal number.
 */
bool number_decimal(const char *text, double *out);

/*
 * Print "fpmctl: rate '1.5' is not WANT", where WANT says which numbers are allowed.
 * Returns CTL_USAGE.
 */
int number_refused(const char *word, const char *text, const char *want);

/* --- the end -------------------------------------------------------------------------- */

/*
 * Flush stdout. `error` is the errno of an earlier write to stdout that failed, or 0.
 * Returns `rc`, or CTL_NO_DAEMON after printing an error if stdout could not be written.
 * EPIPE is no error.
 */
int stdout_flush(int rc, int error);

/*
 * Commands that run until the user stops them end cleanly on SIGINT (Ctrl-C) and SIGTERM,
 * with the exit code of the output so far.
 *
 * stop_begin() installs the handlers. With `at_once` a signal ends the output immediately.
 * Otherwise the output is completed first, as a JSON array requires, and a second signal
 * ends the program.
 */
void stop_begin(bool at_once);

/*
 * Set the connection (-1: none) that a signal also shuts down, so that a read from the
 * daemon ends. Without `at_once` the call has no effect.
 */
void stop_ends(int fd);

/*
 * Return true if a signal arrived; stop_now(): if the signal also ends the output at once.
 */
bool stop_wanted(void);
bool stop_now(void);

/*
 * Wait for some seconds, until a signal arrives, or until the reader of stdout has ended.
 */
void stop_pause(double seconds);

#endif
