/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Command line functions that all commands share. State: whether a signal requested the
 * end, the connection that the signal shuts down, and whether an error of stdout was
 * printed.
 */
#include "ctl/cli.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/edit_distance.h"
#include "base/log.h"
#include "ctl/text.h"

/* --- wrong words ---------------------------------------------------------------------- */

int
cli_usage(const struct command *c)
{
	usage_print(stderr, c != NULL ? c->name : "COMMAND ...", c != NULL ? c->words : "");
	if (c != NULL)
		fprintf(stderr, "see `fpmctl help %s`\n", c->name);
	else
		fputs("`fpmctl help` lists commands and options\n", stderr);
	return CTL_USAGE;
}

int
cli_unexpected(const char *word, const struct command *c)
{
	return cli_unexpected_but(word, NULL, c);
}

int
cli_unexpected_but(const char *word, const char *meant, const struct command *c)
{
	char shown[256];

	log_escape_name(word, shown, sizeof(shown)); /* it may be no UTF-8 */
	if (meant != NULL)
		fprintf(stderr, "fpmctl: unexpected word '%s'; did you mean %s?\n", shown,
			meant);
	else
		fprintf(stderr, "fpmctl: unexpected word '%s'\n", shown);
	return cli_usage(c);
}

int
cli_no_value(const char *word, const struct command *c)
{
	fprintf(stderr, "fpmctl: %s needs a value\n", word);
	return cli_usage(c);
}

/*
 * Refuse a word that is given twice, because choosing one of the values would be a guess.
 */
int
cli_twice(const char *word, const struct command *c)
{
	fprintf(stderr, "fpmctl: %s is given twice\n", word);
	return cli_usage(c);
}

/* --- words that are nearly right ------------------------------------------------------ */

#define WORD_MAX  16
#define SHORT_MIN 3 /* a shorter prefix matches too many words */

bool
word_is_near(const char *word, const char *known)
{
	size_t len = strlen(word);

	if (len > WORD_MAX || strlen(known) > WORD_MAX)
		return false;
	return (len >= SHORT_MIN && strncmp(word, known, len) == 0) ||
	       edit_distance(word, known) <= len / 4;
}

/* --- numbers -------------------------------------------------------------------------- */

#define DIGITS "0123456789"

bool
number_whole(const char *text, long long *out)
{
	if (text[0] == '\0' || text[strspn(text, DIGITS)] != '\0')
		return false;
	errno = 0;
	*out = strtoll(text, NULL, 10);
	return errno == 0; /* a number out of range is refused, not clamped */
}

bool
number_decimal(const char *text, double *out)
{
	size_t whole = strspn(text, DIGITS), dot = text[whole] == '.';
	size_t part = dot ? strspn(text + whole + 1, DIGITS) : 0;

	if (whole + part == 0 || text[whole + dot + part] != '\0')
		return false;
	*out = strtod(text, NULL);
	return true;
}

int
number_refused(const char *word, const char *text, const char *want)
{
	fprintf(stderr, "fpmctl: %s '%s' is not %s\n", word, text, want);
	return CTL_USAGE;
}

/* --- the end -------------------------------------------------------------------------- */

int
stdout_flush(int rc, int error)
{
	static bool told; /* print it once */

	if (error == 0 && fflush(stdout) != 0)
		error = errno;
	/* A reader that closes the pipe early (`| head`) is no error. */
	if (error == 0 || error == EPIPE)
		return rc;
	if (!told)
		fprintf(stderr, "fpmctl: cannot write: %s\n", strerror(error));
	told = true;
	return CTL_NO_DAEMON;
}

/*
 * The flag that signals set. A function that waits unblocks the signals only while it
 * waits, so that a signal just before the wait is not missed.
 */
static volatile sig_atomic_t wanted;
static volatile sig_atomic_t connection = -1; /* the connection that a signal shuts down */
static bool cut_off;

static void
connection_end(void)
{
	if (cut_off && connection >= 0)
		shutdown(connection, SHUT_RD); /* async-signal-safe: POSIX */
}

static void
stop_on_signal(int number)
{
	int error = errno;

	wanted = 1;
	connection_end();
	errno = error;
}

void
stop_ends(int fd)
{
	connection = fd;
	if (wanted) /* the signal arrived before this call */
		connection_end();
}

void
stop_begin(bool at_once)
{
	struct sigaction end = {.sa_handler = stop_on_signal};

	/* Without SA_RESTART a signal also ends a write to a pipe that no program reads. */
	if (!at_once)
		end.sa_flags = SA_RESTART | (int)SA_RESETHAND;
	cut_off = at_once;
	sigaction(SIGINT, &end, NULL);
	sigaction(SIGTERM, &end, NULL);
}

bool
stop_wanted(void)
{
	return wanted != 0;
}

bool
stop_now(void)
{
	return cut_off && wanted != 0;
}

void
stop_pause(double seconds)
{
	struct timespec t = {.tv_sec = (time_t)seconds};
	struct pollfd out = {.fd = STDOUT_FILENO};
	sigset_t both, before;

	t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
	sigemptyset(&both);
	sigaddset(&both, SIGINT);
	sigaddset(&both, SIGTERM);
	sigprocmask(SIG_BLOCK, &both, &before);
	/*
	 * POLLERR ends the wait when the reader has closed the pipe; the next write then
	 * fails.
	 */
	if (!stop_wanted())
		ppoll(&out, 1, &t, &before);
	sigprocmask(SIG_SETMASK, &before, NULL);
}
