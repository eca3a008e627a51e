/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `fpmctl trace` and `fpmctl capture`: print or write live packets until the count or the
 * time is reached or the user stops. Memory holds one row only.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base64.h"
#include "ctl/cmd.h"
#include "ctl/conn.h"
#include "ctl/print_rows.h"
#include "ctl/text.h"
#include "ctl/words.h"

#define TRACE_COUNT 10

struct watch {
	bool capture, json;
	FILE *out;
	unsigned long long n_rows; /* trace: rows printed */
	unsigned long long packets, lost;
	bool begun; /* capture: packets were written */
	bool ended; /* the daemon ended it: the last row has arrived */
	int write_error;
};

/* Decode base64 text and write it. Returns 0 or an errno. */
static int
octets_write(FILE *out, const char *text)
{
	size_t len = strlen(text);
	uint8_t *data = malloc(base64_room(len) + 1);
	int error;

	if (data == NULL)
		abort();
	len = base64_decode(text, len, data);
	/*
	 * If the octets exceed the buffer, fwrite() itself fails, and fflush() does not
	 * report the error.
	 */
	error = fwrite(data, 1, len, out) == len ? 0 : errno;
	free(data);
	return error;
}

static bool
watch_on_row(const json_t *row, const char *text, void *ctx)
{
	struct watch *w = ctx;

	errno = 0;
	if (row_has(row, "lost")) {
		w->packets = (unsigned long long)row_int(row, "packets");
		w->lost = (unsigned long long)row_int(row, "lost");
	}
	if (!row_has(row, w->capture ? "pcapng" : "point")) {
		w->ended = row_has(row, "lost"); /* otherwise the watch has just begun */
		return true;
	}
	if (w->capture) {
		/* Keep the old contents of the file until the first packet arrives. */
		if (!w->begun && w->out != stdout && ftruncate(fileno(w->out), 0) < 0 &&
		    errno != EINVAL)
			w->write_error = errno;
		w->begun = true;
		if (w->write_error == 0)
			w->write_error = octets_write(w->out, row_str(row, "pcapng"));
	} else if (w->json) {
		json_row_print(w->n_rows, text);
	} else {
		if (w->n_rows > 0)
			putchar('\n');
		walk_print(row);
	}
	w->n_rows++;
	if (fflush(w->out) != 0 && w->write_error == 0)
		w->write_error = errno;
	return w->write_error == 0;
}

static void
filter_put(json_t *filter, const char *key, const char *value)
{
	if (value != NULL)
		json_object_set_new(filter, key, json_string(value));
}

static void
filter_put_number(json_t *filter, const char *key, long long value)
{
	if (value > 0)
		json_object_set_new(filter, key, json_integer(value));
}

static json_t *
filter_make(const struct words *w, bool capture)
{
	json_t *filter = json_object(), *points = json_array();

	filter_put(filter, "port", w->port);
	filter_put(filter, "src", w->src);
	filter_put(filter, "dst", w->dst);
	filter_put(filter, "host", w->host);
	filter_put(filter, "verdict", w->verdict);
	filter_put(filter, "reason", w->reason);
	if (w->proto >= 0)
		json_object_set_new(filter, "proto", json_integer(w->proto));
	filter_put_number(filter, "sport", w->sport);
	filter_put_number(filter, "dport", w->dport);
	filter_put_number(filter, "snap", w->snap);
	filter_put_number(filter, "count",
			  w->count > 0 || capture || w->for_s > 0 ? w->count : TRACE_COUNT);
	if (w->for_s > 0)
		json_object_set_new(filter, "for_s", json_real(w->for_s));
	if (w->rx)
		json_array_append_new(points, json_string("rx"));
	if (w->tx)
		json_array_append_new(points, json_string("tx"));
	if (w->drop)
		json_array_append_new(points, json_string("drop"));
	if (json_array_size(points) > 0)
		json_object_set(filter, "points", points);
	json_decref(points);
	return filter;
}

/*
 * Open the output of a capture without truncating it; NULL after printing an error. Only
 * the owner may read a new file, because it has packets of other users.
 */
static FILE *
capture_open(const char *file, bool *is_new)
{
	FILE *out = NULL;
	int fd;

	if (file != NULL && strcmp(file, "-") != 0) {
		*is_new = access(file, F_OK) < 0;
		fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd >= 0)
			out = fdopen(fd, "wb");
		if (out == NULL)
			fprintf(stderr, "fpmctl: cannot write %s: %s\n", file,
				strerror(errno));
		return out;
	}
	if (!isatty(STDOUT_FILENO))
		return stdout;
	fputs("fpmctl: a terminal cannot show pcapng: use -w FILE, or `-w - | tshark -r "
	      "-`\n",
	      stderr);
	return NULL;
}

/* Print the end of a watch that succeeded. Returns an exit code. */
static int
watch_conclude(const struct watch *w, const char *file, double for_s)
{
	bool none = w->ended && w->packets == 0 && w->lost == 0;

	if (none)
		fprintf(stderr, "fpmctl: no matching packet in %g s\n", for_s);
	if (w->capture && w->begun && file != NULL && strcmp(file, "-") != 0)
		fprintf(stderr, "%llu packet%s in %s\n", w->packets,
			text_plural((long long)w->packets), file);
	return none && !w->capture ? CTL_NOT_FOUND : CTL_OK;
}

/*
 * Print live packets (trace), or write them as pcapng to a file ("-" or NULL: stdout).
 * Returns an exit code.
 */
static int
watch_run(const struct options *opt, bool capture, int n, char **word)
{
	struct watch w = {.capture = capture, .json = opt->json, .out = stdout};
	const char *file = capture ? opt->file : NULL;
	struct words words;
	bool is_new = false;
	json_t *request;
	int rc = words_take(&words, capture ? WORDS_CAPTURE : WORDS_TRACE, n, word);

	if (rc != CTL_OK)
		return rc;
	if (capture)
		w.out = capture_open(file, &is_new);
	if (w.out == NULL)
		return CTL_USAGE;
	request = json_pack("{s:o}", capture ? "capture" : "trace",
			    filter_make(&words, capture));
	rc = conn_watch(opt->socket, request, watch_on_row, &w);
	json_decref(request);
	if (rc == CTL_OK && opt->json && !capture)
		json_rows_end(w.n_rows);
	if (w.lost > 0)
		fprintf(stderr,
			"fpmctl: %llu more packets were lost because they came too fast\n",
			w.lost);
	if (w.out != stdout && fclose(w.out) != 0 && w.write_error == 0)
		w.write_error = errno;
	if (rc == CTL_OK && w.write_error == 0)
		rc = watch_conclude(&w, file, words.for_s);
	if (is_new && !w.begun)
		unlink(file);
	return stdout_flush(rc, w.write_error);
}

static void
match_help(FILE *out)
{
	fputs("      Each word is given once. A packet matches if all words match. Words "
	      "that\n"
	      "      no packet can match, or that have no effect, are refused: ports of a\n"
	      "      protocol without ports, addresses of two families.\n",
	      out);
}

static int
trace_run(const struct options *opt, int n, char **word)
{
	return watch_run(opt, false, n, word);
}

static void
trace_help(FILE *out)
{
	words_help(out, WORDS_TRACE);
	match_help(out);
	fputs("      If no packet matched, a line says so: exit code 3.\n", out);
}

static void
trace_complete(FILE *out, int n, char **word)
{
	words_complete(out, WORDS_TRACE, n, word);
}

const struct command cmd_trace = {
	.name = "trace",
	.words = "[WORDS]",
	.text = "show how live packets (default: 10) are handled, stage by stage",
	.run = trace_run,
	.options = OPT_JSON,
	.help = trace_help,
	.complete = trace_complete,
};

static int
capture_run(const struct options *opt, int n, char **word)
{
	return watch_run(opt, true, n, word);
}

static void
capture_help(FILE *out)
{
	fputs("      -w, --write FILE   output; - is standard output, which is the "
	      "default\n"
	      "                         unless it is a terminal\n",
	      out);
	words_help(out, WORDS_CAPTURE);
	match_help(out);
	fputs("      If no packet matched, a line says so.\n", out);
}

static void
capture_complete(FILE *out, int n, char **word)
{
	words_complete(out, WORDS_CAPTURE, n, word);
}

const struct command cmd_capture = {
	.name = "capture",
	.words = "[-w FILE|-] [WORDS]",
	.text = "write live packets as pcapng, dropped ones with their reason",
	.run = capture_run,
	.options = OPT_FILE,
	.help = capture_help,
	.complete = capture_complete,
};
