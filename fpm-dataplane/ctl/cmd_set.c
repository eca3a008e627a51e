/* SPDX-License-Identifier: BSD-3-Clause */
/* `fpmctl set`: change policers of a running daemon until it ends. */
#include <stdio.h>
#include <string.h>

#include "base/policer.h"
#include "ctl/change.h"
#include "ctl/cmd.h"
#include "ctl/conn.h"
#include "ctl/print_rows.h"

static void
set_help(FILE *out)
{
	fputs("      rate N          packets per second of the class, or unlimited\n"
	      "      burst N         packets of the class in a burst\n"
	      "      source-rate N   packets per second of each source, or unlimited\n"
	      "      source-burst N  packets of each source in a burst\n"
	      "      `fpmctl show punt` lists the classes. A rate of 0 drops all packets. "
	      "The\n"
	      "      change lasts until the daemon ends. To keep it, add it to `policers` "
	      "in\n"
	      "      the configuration file. `fpmctl config show` prints the running\n"
	      "      configuration.\n",
	      out);
}

/* The words, the key in the request for each word, and the allowed numbers. */
static const struct {
	const char *word, *key, *unit;
	unsigned int min, max; /* min 0: a rate, which may be unlimited */
} rate_key[] = {
	{"rate", "rate", "packets a second", 0, POLICER_RATE_MAX},
	{"burst", "burst", "packets", 1, POLICER_BURST_MAX},
	{"source-rate", "source_rate", "packets a second", 0, POLICER_RATE_MAX},
	{"source-burst", "source_burst", "packets", 1, POLICER_BURST_MAX},
};
#define N_RATE_KEY (sizeof(rate_key) / sizeof(rate_key[0]))

static void
set_complete(FILE *out, int n, char **word)
{
	if (n == 0) {
		fputs("policer\n", out);
		return;
	}
	for (unsigned int i = 0; i < (n == 1 ? N_PUNT_CLASS : N_RATE_KEY); i++)
		fprintf(out, "%s ", n == 1 ? punt_class_info[i].name : rate_key[i].word);
	fputc('\n', out);
}

static bool
set_on_row(const json_t *row, const char *text, void *ctx)
{
	const struct view *view = view_find("punt");

	if (*(const bool *)ctx) {
		json_row_print(0, text);
		json_rows_end(1);
	} else {
		view->head();
		view->row(row);
	}
	return true;
}

/*
 * Add a word with its value to the request. Returns CTL_OK, or another exit code after
 * printing an error.
 */
static int
rate_pair(json_t *request, const char *word, const char *value)
{
	unsigned int k = 0;
	char want[96];
	json_t *json;
	long long n;

	while (k < N_RATE_KEY && strcmp(word, rate_key[k].word) != 0)
		k++;
	if (k == N_RATE_KEY)
		return cli_unexpected(word, &cmd_set);
	if (json_object_get(request, rate_key[k].key) != NULL)
		return cli_twice(word, &cmd_set);
	if (rate_key[k].min == 0 && strcmp(value, "unlimited") == 0)
		json = json_string(value);
	else if (number_whole(value, &n) && n >= rate_key[k].min && n <= rate_key[k].max)
		json = json_integer(n);
	else {
		snprintf(want, sizeof(want), "a whole number of %s from %u to %u%s",
			 rate_key[k].unit, rate_key[k].min, rate_key[k].max,
			 rate_key[k].min == 0 ? ", nor unlimited" : "");
		return number_refused(word, value, want);
	}
	json_object_set_new(request, rate_key[k].key, json);
	return CTL_OK;
}

static int
set_run(const struct options *opt, int n, char **word)
{
	bool json = opt->json;
	json_t *request;
	int rc = CTL_OK;

	if (n > 0 && strcmp(word[0], "policer") != 0)
		return cli_unexpected(word[0], &cmd_set);
	if (n < 3) {
		fputs("fpmctl: set needs policer CLASS, then pairs such as `rate 1000`\n",
		      stderr);
		return cli_usage(&cmd_set);
	}
	if (n % 2 != 0)
		return cli_no_value(word[n - 1], &cmd_set);
	request = json_pack("{s:s, s:s}", "set", "policer", "class", word[1]);
	for (int i = 2; i < n && rc == CTL_OK; i += 2)
		rc = rate_pair(request, word[i], word[i + 1]);
	if (rc == CTL_OK)
		rc = conn_ask(opt->socket, request, set_on_row, &json);
	if (rc == CTL_OK && !json)
		puts(CHANGE_LASTS);
	json_decref(request);
	return rc;
}

const struct command cmd_set = {
	.name = "set",
	.words = "policer CLASS [rate N] [burst N] ...",
	.text = "change a policer until the daemon ends",
	.run = set_run,
	.options = OPT_JSON,
	.help = set_help,
	.complete = set_complete,
};
