/* SPDX-License-Identifier: BSD-3-Clause */
/* Request a change of the running daemon, and print the differences and the result. */
#include "ctl/change.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ctl/conn.h"
#include "ctl/text.h"

struct answer {
	bool json;
	unsigned long long n_rows;
	json_t *rows; /* differences, kept until the result is known */
	bool unread;  /* the daemon cannot read the file */
};

static const char *
value_or_none(const json_t *row, const char *key)
{
	return row_has(row, key) ? row_str(row, key) : "none";
}

static bool
change_on_row(const json_t *row, const char *text, void *ctx)
{
	struct answer *a = ctx;

	a->unread |= strstr(row_str(row, "wrong"), ": cannot be read: ") != NULL;
	if (a->json) {
		json_row_print(a->n_rows, text);
	} else if (row_has(row, "wrong")) {
		fprintf(stderr, "%s\n", row_str(row, "wrong"));
	} else {
		rows_keep(row, text, a->rows);
	}
	a->n_rows++;
	return true;
}

int
change_ask(const struct options *opt, json_t *request, const char *file, const char *lasts)
{
	struct answer a = {.json = opt->json, .rows = json_array()};
	int rc = conn_ask(opt->socket, request, change_on_row, &a);
	const json_t *row;
	size_t i;

	if (a.unread && file != NULL && access(file, R_OK) == 0)
		fputs("fpmctl: you can read the file, but the daemon cannot: its unit "
		      "hides /tmp, /home and /root, and files that only a user other than "
		      "root may read; put the file below /etc/fpm-dataplane, owned by "
		      "root\n",
		      stderr);
	if (rc != CTL_OK && json_array_size(a.rows) > 0)
		puts("requested:");
	json_array_foreach (a.rows, i, row) {
		bool note = row_has(row, "note");

		line_print(4, "%s %s: %s -> %s%s%s%s",
			   row_true(row, "possible") ? " " : "!", row_str(row, "key"),
			   value_or_none(row, "from"), value_or_none(row, "to"),
			   note ? "  (" : "", row_str(row, "note"), note ? ")" : "");
	}
	if (a.json && (rc == CTL_OK || a.n_rows > 0))
		json_rows_end(a.n_rows);
	else if (!a.json && rc == CTL_OK && a.n_rows == 0)
		puts("no difference from the running configuration");
	else if (!a.json && rc == CTL_OK)
		puts(opt->dry_run ? "nothing changed: --dry-run" : "applied");
	if (!a.json && rc == CTL_OK && a.n_rows > 0 && lasts != NULL)
		puts(lasts);
	json_decref(a.rows);
	json_decref(request);
	return rc;
}
