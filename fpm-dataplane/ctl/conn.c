/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Send one request over the control socket and pass its rows on one by one, so that memory
 * holds only one row. The program waits half a minute for a silent daemon. While the daemon
 * changes its ports, the program prints a note and waits as long as a device may need.
 */
#include "ctl/conn.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/haste.h"
#include "base/log.h"
#include "ctl/cli.h"

#define SILENCE_MS  30000u
#define CHANGE_S    330  /* manage/hotplug.c waits 300 s for a device */
#define HOLD_S      80   /* FRR's unit waits for fpmctl hold; systemd waits 90 s for it */
#define REQUEST_MAX 4096 /* base/rows.md */

enum manner {
	ASK,
	TRY,   /* print no errors */
	WATCH, /* wait without limit after the first row */
};

static enum manner manner;
/* Longest wait for a daemon that sends nothing. */
static unsigned int patience_ms = SILENCE_MS;

static void __attribute__((format(printf, 1, 2))) conn_complain(const char *fmt, ...)
{
	va_list ap;

	if (manner == TRY)
		return;
	va_start(ap, fmt);
	fputs("fpmctl: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
}

static int
conn_lost(const char *path, int error)
{
	if (error == EAGAIN || error == EWOULDBLOCK)
		conn_complain("the daemon on %s has not answered for %u s; it hangs or is "
			      "very busy: see its log",
			      path, haste_ms(patience_ms) / 1000);
	else
		conn_complain("the connection to %s was lost before the answer was "
			      "complete; the daemon may have stopped: try again",
			      path);
	return CTL_NO_DAEMON;
}

static int
conn_no_daemon(const char *path, int error)
{
	const char *hint = "start fpm-dataplane, or give another socket with -s SOCKET";

	if (error == EACCES || error == EPERM)
		hint = "only root and the group of the socket have access";
	if (error == EAGAIN) /* the backlog of the socket is full */
		return conn_lost(path, error);
	conn_complain("no daemon answers on %s: %s; %s", path, strerror(error), hint);
	return CTL_NO_DAEMON;
}

/* Set how long to wait for a silent daemon. 0: without limit. */
static void
conn_set_patience(int fd, unsigned int silence_ms)
{
	struct timeval silence = {.tv_sec = silence_ms / 1000,
				  .tv_usec = silence_ms % 1000 * 1000};

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof(silence));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &silence, sizeof(silence));
}

void
conn_patience(unsigned int ms)
{
	patience_ms = ms;
}

/* Connect. Returns a stream on the connection, or NULL with errno set. */
static FILE *
conn_open(const char *path)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	FILE *f = NULL;
	int fd, error;

	if (strlen(path) >= sizeof(sun.sun_path)) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	strcpy(sun.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return NULL;
	conn_set_patience(fd, haste_ms(patience_ms));
	if (connect(fd, (struct sockaddr *)&sun, sizeof(sun)) == 0)
		f = fdopen(fd, "r");
	if (f == NULL) {
		error = errno;
		close(fd);
		errno = error;
	}
	return f;
}

bool
conn_is_there(const char *path)
{
	FILE *f = conn_open(path);

	if (f != NULL)
		fclose(f);
	return f != NULL || errno == EAGAIN;
}

/*
 * Format the request as a line, which the caller frees; NULL: it cannot be sent, and the
 * error was printed.
 */
static char *
request_line(const json_t *request)
{
	char *text = json_dumps(request, JSON_COMPACT);
	size_t len = text != NULL ? strlen(text) : 0;

	/* A malformed word made json_pack() fail */
	if (text == NULL)
		conn_complain("a word is not UTF-8");
	else if (len >= REQUEST_MAX)
		conn_complain("the request is longer than the daemon accepts (%d octets)",
			      REQUEST_MAX);
	else
		return text;
	free(text);
	return NULL;
}

/*
 * Send the request. A daemon that has closed the connection may have sent an error, which
 * is read next.
 */
static bool
request_send(FILE *f, char *text)
{
	size_t len = strlen(text);

	text[len] = '\n'; /* replaces the terminator: one write, one line */
	return send(fileno(f), text, len + 1, MSG_NOSIGNAL) == (ssize_t)(len + 1) ||
	       errno == EPIPE || errno == ECONNRESET;
}

/* Return an exit code if `row` ends the answer, else -1. */
static int
row_ends_answer(const json_t *row)
{
	const json_t *error = json_object_get(row, "error");
	long long code = row_int(row, "code");

	if (json_is_true(json_object_get(row, "end")))
		return CTL_OK;
	if (!json_is_string(error))
		return -1;
	conn_complain("%s", json_string_value(error));
	return code >= CTL_NO_DAEMON && code <= CTL_NOT_FOUND ? (int)code : CTL_NO_DAEMON;
}

/* Return true if a line of JSON may have control characters or escapes. */
static bool
line_is_strange(const char *line)
{
	for (; *line != '\0'; line++)
		if (*line == '\\' || (unsigned char)*line >= 0x7f)
			return true;
	return false;
}

/*
 * Escape the control characters U+007F to U+009F in a line of JSON, because jansson escapes
 * only characters below U+0020. Returns NULL if out of memory.
 */
static char *
line_escaped(const char *line)
{
	char *out = malloc(strlen(line) * 6 + 1), *at = out;

	while (out != NULL && *line != '\0') {
		unsigned char c = (unsigned char)line[0], next = (unsigned char)line[1];
		bool two = c == 0xc2 && next >= 0x80 && next < 0xa0;

		if (two || c == 0x7f)
			at += sprintf(at, "\\u%04x", two ? next : c);
		else
			*at++ = *line;
		line += two ? 2 : 1;
	}
	if (out != NULL)
		*at = '\0';
	return out;
}

/*
 * Return the seconds to wait for a slow request, and set *what to the text to print
 * meanwhile. 0: the request is not slow. Requests to the manage thread are slow, because it
 * handles one at a time. A hold is slow, because rib answers it after all earlier updates
 * of zebra.
 */
static int
request_slow_s(const json_t *request, const char **what)
{
	if (strcmp(row_str(request, "do"), "hold") == 0) {
		*what = "the hold takes effect after all earlier updates of zebra; `fpmctl "
			"show fpm` shows whether the hold is in force";
		return HOLD_S;
	}
	*what = "the daemon is still working: a device takes long to start or stop. It "
		"continues whether you wait or not; `fpmctl config show` shows the result";
	return json_object_get(request, "port") != NULL ||
			       json_object_get(request, "config") != NULL ||
			       json_object_get(request, "set") != NULL
		       ? CHANGE_S
		       : 0;
}

/* Wait until the answer to a slow request begins. Returns true if it does. */
static bool
conn_await_slow(int fd, const json_t *request)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	const char *what;
	int most_s = request_slow_s(request, &what);

	if (most_s == 0 || poll(&p, 1, (int)haste_ms(SILENCE_MS)) != 0)
		return true;
	conn_complain("%s", what);
	if (poll(&p, 1, most_s * 1000 - (int)SILENCE_MS) != 0)
		return true;
	conn_complain("no answer after %d s; the daemon may still be working: its log has "
		      "the result",
		      most_s);
	return false;
}

static int
conn_converse(const char *path, const json_t *request, enum manner how,
	      bool (*on_row)(const json_t *row, const char *text, void *ctx), void *ctx)
{
	char *line = NULL, *asked = request_line(request);
	bool begun = false;
	size_t size = 0;
	ssize_t len;
	int rc = -1;
	FILE *f;

	manner = how;
	if (asked == NULL)
		return CTL_USAGE;
	f = conn_open(path);
	if (f == NULL) {
		free(asked);
		return stop_now() ? CTL_OK : conn_no_daemon(path, errno);
	}
	stop_ends(fileno(f));
	if (!request_send(f, asked))
		rc = stop_now() ? CTL_OK : conn_lost(path, errno);
	else if (!conn_await_slow(fileno(f), request))
		rc = CTL_NO_DAEMON;
	free(asked);
	while (rc < 0) {
		char *strange = NULL;
		json_t *row;

		errno = 0;
		len = getline(&line, &size, f);
		if (len <= 0 || line[len - 1] != '\n') {
			rc = stop_now() ? CTL_OK : conn_lost(path, errno);
			break;
		}
		/*
		 * The daemon confirms a watch at once; then there may be no packets for
		 * hours.
		 */
		if (how == WATCH && !begun)
			conn_set_patience(fileno(f), 0);
		begun = true;
		line[len - 1] = '\0';
		row = json_loads(line, 0, NULL);
		if (line_is_strange(line)) {
			strange = line_escaped(line);
			rows_harmless(row);
		}
		if (!json_is_object(row)) {
			conn_complain("the program on %s is not fpm-dataplane, or has "
				      "another version",
				      path);
			rc = CTL_NO_DAEMON;
		} else {
			rc = row_ends_answer(row);
			if (rc < 0 && on_row != NULL &&
			    !on_row(row, strange != NULL ? strange : line, ctx))
				rc = CTL_OK;
		}
		free(strange);
		json_decref(row);
	}
	free(line);
	stop_ends(-1);
	fclose(f);
	return rc;
}

int
conn_ask(const char *path, const json_t *request,
	 bool (*on_row)(const json_t *row, const char *text, void *ctx), void *ctx)
{
	return conn_converse(path, request, ASK, on_row, ctx);
}

int
conn_try(const char *path, const json_t *request,
	 bool (*on_row)(const json_t *row, const char *text, void *ctx), void *ctx)
{
	return conn_converse(path, request, TRY, on_row, ctx);
}

int
conn_watch(const char *path, const json_t *request,
	   bool (*on_row)(const json_t *row, const char *text, void *ctx), void *ctx)
{
	stop_begin(true);
	return conn_converse(path, request, WATCH, on_row, ctx);
}

int
conn_fetch(const char *path, json_t *request, json_t *rows)
{
	int rc = conn_ask(path, request, rows != NULL ? rows_keep : NULL, rows);

	json_decref(request);
	return rc;
}
