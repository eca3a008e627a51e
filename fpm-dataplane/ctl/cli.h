/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cli: what all commands of fpmctl share: their exit codes and options, how each is described,
 * what is said of words that are wrong, and the end by a signal. Knows no command.
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
	double watch_s, rates_s; /* 0: not */
	bool repair, dry_run, force;
	const char *vtysh, *file; /* NULL: not given */
};

/* Those that belong to some commands only. */
#define OPT_REPAIR  1u
#define OPT_VTYSH   2u
#define OPT_FILE    4u
#define OPT_FAMILY  8u
#define OPT_DRY_RUN 16u
#define OPT_TIMES   32u
#define OPT_FORCE   64u
#define OPT_JSON    128u

/* One command: `fpmctl NAME WORDS`. The completion and the manual page are made from these, too. */
struct command {
	const char *name, *words, *text;
	/* Do it, with the words behind its name. Returns an exit code. */
	int (*run)(const struct options *opt, int n, char **word);
	unsigned int options;    /* OPT_: those that belong to it */
	void (*help)(FILE *out); /* its words; NULL: none */
	/* Print on a line what may follow these words behind its name; NULL: nothing may. */
	void (*complete)(FILE *out, int n, char **word);
};

/* --- wrong words -------------------------------------------------------------------------- */

/*
 * How a command (NULL: any) is used, on stderr; before that which word of it is unexpected, has
 * no value or is given twice. All return CTL_USAGE.
 */
int cli_usage(const struct command *c);
int cli_unexpected(const char *word, const struct command *c);
/* The same, with the word that was `meant` (NULL: nobody knows). */
int cli_unexpected_but(const char *word, const char *meant, const struct command *c);
int cli_no_value(const char *word, const struct command *c);
int cli_twice(const char *word, const struct command *c);

/* May `word` be `known`, cut short or misspelt? A hint, never what is done. */
bool word_is_near(const char *word, const char *known);

/* --- numbers ------------------------------------------------------------------------------ */

/*
 * Numbers on the command line. One with a sign, a unit, an exponent or blanks is none: what
 * it might have meant is not guessed.
 */

/* Is `text` a whole number, of those that *out can have? Then it has it. */
bool number_whole(const char *text, long long *out);

/* Is it one that may have a fraction, "2", "0.5"? Then *out has it. */
bool number_decimal(const char *text, double *out);

/* "fpmctl: rate '1.5' is not WANT", which says what is allowed. Returns CTL_USAGE. */
int number_refused(const char *word, const char *text, const char *want);

/* --- the end ------------------------------------------------------------------------------ */

/* The exit code when all has been written to stdout, or (`error`, an errno) could not be. */
int stdout_flush(int rc, int error);

/*
 * What goes on until somebody ends it ends well then: SIGINT (Ctrl-C) and SIGTERM are a wish,
 * and the exit code tells of what there was.
 *
 * From now on. `at_once`: what is under way is cut off; else it is completed first, as an
 * array of JSON has to be, and who cannot wait for that sends the signal again.
 */
void stop_begin(bool at_once);

/*
 * What the daemon has to say on this connection (-1: none any more) ends `at_once`, too,
 * whatever we are doing then: a read or what it read.
 */
void stop_ends(int fd);

/* Has one come? And is nothing to be completed first? */
bool stop_wanted(void);
bool stop_now(void);

/* Wait so long, or until one comes, or nobody reads stdout any more. */
void stop_pause(double seconds);

#endif
