/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `fpmctl config` and `fpmctl set`: what a running daemon goes by. `config check` needs no
 * daemon: it is the daemon's own code, looking at this machine from here.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl.h"

void
config_help(FILE *out)
{
	fputs("      check FILE     all that is wrong with a file, with line and column; "
	      "no "
	      "daemon\n"
	      "                     is asked\n"
	      "      show           what runs, as YAML that starts the same router\n"
	      "      reload [FILE]  read the daemon's file again, or FILE; shows what "
	      "differs and\n"
	      "                     applies all of it, or nothing when a part is "
	      "impossible\n"
	      "      --dry-run      only show\n",
	      out);
}

static int
check(int n, char **word)
{
	static struct config conf;
	int errors;

	if (n != 1) {
		fputs("fpmctl: config check FILE\n", stderr);
		return usage("config");
	}
	errors = config_load(word[0], &conf, stderr);
	if (errors > 0)
		fprintf(stderr, "%s: %d error%s\n", word[0], errors,
			errors == 1 ? "" : "s");
	else
		printf("%s: good: %u port%s\n", word[0], conf.n_port,
		       conf.n_port == 1 ? "" : "s");
	return errors > 0 ? CTL_USAGE : CTL_OK;
}

struct answer {
	bool json;
	unsigned long long n_rows;
};

static bool
on_yaml(const json_t *row, const char *text, void *ctx)
{
	const struct answer *a = ctx;

	if (a->json)
		printf("[%s]\n", text);
	else
		fputs(row_str(row, "yaml"), stdout);
	return true;
}

static const char *
value(const json_t *row, const char *key)
{
	return row_has(row, key) ? row_str(row, key) : "none";
}

static bool
on_change(const json_t *row, const char *text, void *ctx)
{
	struct answer *a = ctx;

	if (a->json) {
		printf("%s%s", a->n_rows == 0 ? "[" : ",\n", text);
	} else if (row_has(row, "wrong")) {
		fprintf(stderr, "%s\n", row_str(row, "wrong"));
	} else {
		printf("%s %s: %s -> %s", row_true(row, "possible") ? " " : "!",
		       row_str(row, "key"), value(row, "from"), value(row, "to"));
		if (row_has(row, "note"))
			printf("  (%s)", row_str(row, "note"));
		putchar('\n');
	}
	a->n_rows++;
	return true;
}

static int
reload(const struct options *opt, int n, char **word)
{
	struct answer a = {.json = opt->json};
	json_t *what = json_pack("{s:s}", "do", "reload"), *request;
	char *path = NULL;
	int rc;

	if (n > 1)
		return unexpected(word[1], "config");
	if (n == 1) {
		path = realpath(word[0], NULL); /* the daemon stands elsewhere */
		if (path == NULL) {
			fprintf(stderr, "fpmctl: %s: %s\n", word[0], strerror(errno));
			return CTL_USAGE;
		}
		json_object_set_new(what, "file", json_string(path));
		free(path);
	}
	if (opt->dry_run)
		json_object_set_new(what, "dry_run", json_true());
	request = json_pack("{s:o}", "config", what);
	rc = conn_ask(opt->socket, request, on_change, &a);
	json_decref(request);
	if (a.json)
		puts(a.n_rows == 0 ? "[]" : "]");
	else if (rc == CTL_OK && a.n_rows == 0)
		puts("nothing differs from what runs");
	else if (rc == CTL_OK)
		puts(opt->dry_run ? "nothing changed: --dry-run" : "applied");
	return rc;
}

int
config_run(const struct options *opt, int n, char **word)
{
	struct answer a = {.json = opt->json};
	json_t *request;
	int rc;

	if (n == 0) {
		fputs("fpmctl: config check, show or reload?\n", stderr);
		return usage("config");
	}
	if (opt->dry_run && strcmp(word[0], "reload") != 0) {
		fputs("fpmctl: --dry-run belongs to config reload\n", stderr);
		return usage("config");
	}
	if (strcmp(word[0], "check") == 0)
		return check(n - 1, word + 1);
	if (strcmp(word[0], "reload") == 0)
		return reload(opt, n - 1, word + 1);
	if (strcmp(word[0], "show") != 0 || n > 1)
		return unexpected(word[n > 1 && strcmp(word[0], "show") == 0], "config");
	request = json_pack("{s:{s:s}}", "config", "do", "show");
	rc = conn_ask(opt->socket, request, on_yaml, &a);
	json_decref(request);
	return rc;
}

/* --- set ---------------------------------------------------------------------------------- */

void
set_help(FILE *out)
{
	fputs("      rate N          packets a second of the class, or unlimited; 0: none\n"
	      "      burst N         packets\n"
	      "      source-rate N   the same of each source in it\n"
	      "      source-burst N\n"
	      "      `fpmctl show punt` has the classes; for good they belong into the "
	      "file\n"
	      "      (policers), of which `fpmctl config show` is one\n",
	      out);
}

static bool
on_class(const json_t *row, const char *text, void *ctx)
{
	const struct view *view = view_find("punt");

	if (*(const bool *)ctx) {
		printf("[%s]\n", text);
	} else {
		view->head();
		view->row(row);
	}
	return true;
}

int
set_run(const struct options *opt, int n, char **word)
{
	static const char *const key[][2] = {{"rate", "rate"},
					     {"burst", "burst"},
					     {"source-rate", "source_rate"},
					     {"source-burst", "source_burst"}};
	bool json = opt->json;
	json_t *request;
	int rc;

	if (n > 0 && strcmp(word[0], "policer") != 0)
		return unexpected(word[0], "set");
	if (n < 4 || n % 2 != 0) {
		fputs("fpmctl: set policer CLASS, then pairs such as `rate 1000`\n",
		      stderr);
		return usage("set");
	}
	request = json_pack("{s:s, s:s}", "set", "policer", "class", word[1]);
	for (int i = 2; i < n; i += 2) {
		unsigned int k = 0;
		char *end;
		long long number = strtoll(word[i + 1], &end, 10);

		while (k < 4 && strcmp(word[i], key[k][0]) != 0)
			k++;
		if (k == 4) {
			json_decref(request);
			return unexpected(word[i], "set");
		}
		/* What is no number is the daemon's to judge: `unlimited` is one of its words. */
		json_object_set_new(request, key[k][1],
				    *end == '\0' && end != word[i + 1]
					    ? json_integer(number)
					    : json_string(word[i + 1]));
	}
	rc = conn_ask(opt->socket, request, on_class, &json);
	json_decref(request);
	return rc;
}
