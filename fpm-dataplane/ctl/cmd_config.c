/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `fpmctl config`: show, check and change the configuration of a running daemon. `config
 * check` needs no daemon: it runs the daemon's checks in this process.
 */
#include "config/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/load.h"
#include "config/print.h"
#include "ctl/change.h"
#include "ctl/cmd.h"
#include "ctl/conn.h"

static void
config_help(FILE *out)
{
	fputs("      keys           list all keys of the file: default, values, and "
	      "whether a\n"
	      "                     reload applies a change. Needs no daemon\n"
	      "      check FILE     list all errors of a file, with line and column. Needs "
	      "no\n"
	      "                     daemon\n"
	      "      show           print the running configuration as YAML\n"
	      "      reload [FILE]  read the daemon's file again, or FILE. Show the "
	      "differences\n"
	      "                     and apply all of them. If one is impossible, apply "
	      "none\n"
	      "      --dry-run      reload: show the differences only\n",
	      out);
}

/*
 * Make a row from a line of config_load(), "FILE:LINE:COLUMN: KEY: error" or "FILE: error".
 */
static json_t *
wrong_row(const char *file, const char *text)
{
	const char *at = text + strlen(file); /* each line begins with the file as shown */
	int line, column;

	if (sscanf(at, ":%d:%d: ", &line, &column) != 2)
		return json_pack("{s:s, s:n, s:n}", "wrong", text, "line", "column");
	return json_pack("{s:s, s:i, s:i}", "wrong", text, "line", line, "column", column);
}

static void
wrong_print(const char *file, char *said)
{
	json_t *rows = json_array();
	char *rest = said;

	for (char *text; (text = strsep(&rest, "\n")) != NULL;)
		if (text[0] != '\0')
			json_array_append_new(rows, wrong_row(file, text));
	json_print(rows);
	json_decref(rows);
}

static int
config_check_run(const struct options *opt, int n, char **word)
{
	static struct config conf;
	char file[CONFIG_FILE_STRLEN], *said = NULL;
	size_t size;
	FILE *err;
	int errors;

	if (n == 0 || word[0][0] == '\0') {
		fputs("fpmctl: config check needs a FILE\n", stderr);
		return cli_usage(&cmd_config);
	}
	if (n > 1)
		return cli_unexpected(word[1], &cmd_config);
	err = open_memstream(&said, &size);
	if (err == NULL)
		abort();
	errors = config_load(word[0], &conf, err);
	fclose(err);
	config_file_str(word[0], file);
	if (opt->json)
		wrong_print(file, said);
	else if (errors > 0)
		fprintf(stderr, "%s%s: %d error%s\n", said, file, errors,
			errors == 1 ? "" : "s");
	else
		printf("%s: good: %u port%s\n", file, conf.n_port,
		       conf.n_port == 1 ? "" : "s");
	free(said);
	return errors > 0 ? CTL_USAGE : CTL_OK;
}

static void
keys_add(void *ctx, const struct config_key *key)
{
	json_t *rows = ctx;

	json_array_append_new(rows,
			      json_pack("{s:s, s:s?, s:s, s:b, s:b}", "key", key->path,
					"default", key->value, "values", key->expected,
					"required", key->required, "reload", key->live));
}

/* Print every key that a file may have. */
static int
config_keys_run(const struct options *opt, int n, char **word)
{
	json_t *rows, *row;
	size_t i;

	if (n > 0)
		return cli_unexpected(word[0], &cmd_config);
	rows = json_array();
	config_keys(keys_add, rows);
	if (opt->json) {
		json_print(rows);
	} else {
		printf("%-30s %-32s %s\n", "KEY", "DEFAULT", "CHANGED BY");
		json_array_foreach (rows, i, row)
			printf("%-30s %-32s %s\n  %s\n", row_str(row, "key"),
			       row_true(row, "required") ? "required"
			       : row_has(row, "default") ? row_str(row, "default")
							 : "none",
			       row_true(row, "reload") ? "reload" : "restart",
			       row_str(row, "values"));
	}
	json_decref(rows);
	return CTL_OK;
}

static bool
config_on_row(const json_t *row, const char *text, void *ctx)
{
	if (*(const bool *)ctx) {
		json_row_print(0, text);
		json_rows_end(1);
	} else {
		fputs(row_str(row, "yaml"), stdout);
	}
	return true;
}

static int
config_reload_run(const struct options *opt, int n, char **word)
{
	char *path = NULL;
	json_t *what;
	int rc;

	if (n > 1)
		return cli_unexpected(word[1], &cmd_config);
	if (n == 1) {
		/* absolute, because the daemon has another working directory */
		path = realpath(word[0], NULL);
		if (path == NULL) {
			char file[CONFIG_FILE_STRLEN];

			fprintf(stderr, "fpmctl: file '%s': %s\n",
				config_file_str(word[0], file), strerror(errno));
			return CTL_USAGE;
		}
	}
	what = json_pack("{s:s, s:s*}", "do", "reload", "file", path);
	if (what == NULL) {
		free(path);
		fputs("fpmctl: the path of the file is not UTF-8, but a request to the "
		      "daemon must be: rename the file, or start the daemon with this "
		      "file\n",
		      stderr);
		return CTL_USAGE;
	}
	if (opt->dry_run)
		json_object_set_new(what, "dry_run", json_true());
	rc = change_ask(opt, json_pack("{s:o}", "config", what), path, NULL);
	free(path);
	return rc;
}

static int
config_run(const struct options *opt, int n, char **word)
{
	bool json = opt->json;
	json_t *request;
	int rc;

	if (n == 0) {
		fputs("fpmctl: config needs keys, check, show or reload\n", stderr);
		return cli_usage(&cmd_config);
	}
	if (opt->dry_run && strcmp(word[0], "reload") != 0) {
		fputs("fpmctl: --dry-run is for config reload\n", stderr);
		return cli_usage(&cmd_config);
	}
	if (strcmp(word[0], "keys") == 0)
		return config_keys_run(opt, n - 1, word + 1);
	if (strcmp(word[0], "check") == 0)
		return config_check_run(opt, n - 1, word + 1);
	if (strcmp(word[0], "reload") == 0)
		return config_reload_run(opt, n - 1, word + 1);
	if (strcmp(word[0], "show") != 0 || n > 1)
		return cli_unexpected(word[n > 1 && strcmp(word[0], "show") == 0],
				      &cmd_config);
	request = json_pack("{s:{s:s}}", "config", "do", "show");
	rc = conn_ask(opt->socket, request, config_on_row, &json);
	json_decref(request);
	return rc;
}

static void
config_complete(FILE *out, int n, char **word)
{
	if (n == 0)
		fputs("keys check show reload\n", out);
}

const struct command cmd_config = {
	.name = "config",
	.words = "keys | check FILE | show | reload [FILE] [--dry-run]",
	.text = "show, check or change the configuration",
	.run = config_run,
	.options = OPT_JSON | OPT_DRY_RUN,
	.file_word = 1,
	.help = config_help,
	.complete = config_complete,
};
