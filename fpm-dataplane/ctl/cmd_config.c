/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `fpmctl config` and `fpmctl set`: what a running daemon goes by. `config check` needs no
 * daemon: it is the daemon's own code, looking at this machine from here.
 */
#include "config/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/load.h"
#include "config/print.h"
#include "ctl/ctl.h"
#include "ctl/number.h"

void
config_help(FILE *out)
{
	fputs("      keys           every key of the file: default, values, whether "
	      "reload\n"
	      "                     takes it; no daemon is asked\n"
	      "      check FILE     all that is wrong with a file, with line and column;\n"
	      "                     no daemon is asked\n"
	      "      show           what runs, as YAML that starts the same router\n"
	      "      reload [FILE]  read the daemon's file again, or FILE; shows what\n"
	      "                     differs and applies all of it, or nothing when a\n"
	      "                     part is impossible\n"
	      "      --dry-run      only show\n",
	      out);
}

/* One line of config_load(): FILE:LINE:COLUMN: KEY: what is wrong; or FILE: what is wrong. */
static json_t *
wrong_row(const char *file, const char *text)
{
	const char *at = text + strlen(file); /* as it is shown: each line begins with it */
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
check(const struct options *opt, int n, char **word)
{
	static struct config conf;
	char file[CONFIG_FILE_STRLEN], *said = NULL;
	size_t size;
	FILE *err;
	int errors;

	if (n == 0 || word[0][0] == '\0') {
		fputs("fpmctl: config check needs a FILE\n", stderr);
		return usage("config");
	}
	if (n > 1)
		return unexpected(word[1], "config");
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
on_key(void *ctx, const struct config_key *key)
{
	json_t *rows = ctx;

	json_array_append_new(rows,
			      json_pack("{s:s, s:s?, s:s, s:b, s:b}", "key", key->path,
					"default", key->value, "values", key->expected,
					"required", key->required, "reload", key->live));
}

/* Every key that a file may have. */
static int
keys(const struct options *opt, int n, char **word)
{
	json_t *rows, *row;
	size_t i;

	if (n > 0)
		return unexpected(word[0], "config");
	rows = json_array();
	config_keys(on_key, rows);
	if (opt->json) {
		json_print(rows);
	} else {
		printf("%-30s %-32s %s\n", "KEY", "DEFAULT", "CHANGED BY");
		json_array_foreach (rows, i, row)
			printf("%-30s %-32s %s\n  %s\n", row_str(row, "key"),
			       row_true(row, "required") ? "must be there"
			       : row_has(row, "default") ? row_str(row, "default")
							 : "none",
			       row_true(row, "reload") ? "reload" : "restart",
			       row_str(row, "values"));
	}
	json_decref(rows);
	return CTL_OK;
}

struct answer {
	bool json;
	unsigned long long n_rows;
	json_t *rows; /* of what differs: kept until it is known what came of it */
	bool unread;  /* the daemon cannot read the file */
};

static bool
on_yaml(const json_t *row, const char *text, void *ctx)
{
	const struct answer *a = ctx;

	if (a->json) {
		json_row_print(0, text);
		json_rows_end(1);
	} else {
		fputs(row_str(row, "yaml"), stdout);
	}
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

/*
 * Ask for a change and tell what differs, and that it was done; or, of a change that was
 * refused (in words on stderr by now), that it was asked for. `file` (NULL: none) is one that
 * the daemon is to read. Steals `request`.
 */
static int
change(const struct options *opt, json_t *request, const char *file)
{
	struct answer a = {.json = opt->json, .rows = json_array()};
	int rc = conn_ask(opt->socket, request, on_change, &a);
	const json_t *row;
	size_t i;

	if (a.unread && file != NULL && access(file, R_OK) == 0)
		fputs("fpmctl: you can read it, the daemon cannot: its unit hides /tmp, "
		      "/home and /root from it, and what only another user than root may "
		      "read; put it below /etc/fpm-dataplane, as root's\n",
		      stderr);
	if (rc != CTL_OK && json_array_size(a.rows) > 0)
		puts("asked for was:");
	json_array_foreach (a.rows, i, row) {
		bool note = row_has(row, "note");

		line_print(4, "%s %s: %s -> %s%s%s%s",
			   row_true(row, "possible") ? " " : "!", row_str(row, "key"),
			   value(row, "from"), value(row, "to"), note ? "  (" : "",
			   row_str(row, "note"), note ? ")" : "");
	}
	if (a.json && (rc == CTL_OK || a.n_rows > 0))
		json_rows_end(a.n_rows);
	else if (!a.json && rc == CTL_OK && a.n_rows == 0)
		puts("nothing differs from what runs");
	else if (!a.json && rc == CTL_OK)
		puts(opt->dry_run ? "nothing changed: --dry-run" : "applied");
	json_decref(a.rows);
	json_decref(request);
	return rc;
}

static int
reload(const struct options *opt, int n, char **word)
{
	char *path = NULL;
	json_t *what;
	int rc;

	if (n > 1)
		return unexpected(word[1], "config");
	if (n == 1) {
		path = realpath(word[0], NULL); /* the daemon stands elsewhere */
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
		fputs("fpmctl: the file's path is not UTF-8, and what is asked of the "
		      "daemon has to be: rename it, or start the daemon with it\n",
		      stderr);
		return CTL_USAGE;
	}
	if (opt->dry_run)
		json_object_set_new(what, "dry_run", json_true());
	rc = change(opt, json_pack("{s:o}", "config", what), path);
	free(path);
	return rc;
}

int
config_run(const struct options *opt, int n, char **word)
{
	struct answer a = {.json = opt->json};
	json_t *request;
	int rc;

	if (n == 0) {
		fputs("fpmctl: config keys, check, show or reload?\n", stderr);
		return usage("config");
	}
	if (opt->dry_run && strcmp(word[0], "reload") != 0) {
		fputs("fpmctl: --dry-run belongs to config reload\n", stderr);
		return usage("config");
	}
	if (strcmp(word[0], "keys") == 0)
		return keys(opt, n - 1, word + 1);
	if (strcmp(word[0], "check") == 0)
		return check(opt, n - 1, word + 1);
	if (strcmp(word[0], "reload") == 0)
		return reload(opt, n - 1, word + 1);
	if (strcmp(word[0], "show") != 0 || n > 1)
		return unexpected(word[n > 1 && strcmp(word[0], "show") == 0], "config");
	request = json_pack("{s:{s:s}}", "config", "do", "show");
	rc = conn_ask(opt->socket, request, on_yaml, &a);
	json_decref(request);
	return rc;
}

/* The last of words that go in pairs stands alone. */
static int
no_value(const char *word, const char *name)
{
	fprintf(stderr, "fpmctl: %s needs a value\n", word);
	return usage(name);
}

/* Of two values neither is chosen for who says both. */
static int
twice(const char *word, const char *name)
{
	fprintf(stderr, "fpmctl: %s is given twice\n", word);
	return usage(name);
}

/* --- port --------------------------------------------------------------------------------- */

void
port_help(FILE *out)
{
	fputs("      device DEVICE  a PCI address, or DPDK devargs; add needs it\n"
	      "      mtu N          IP packet in octets (1500); below 1280 the TAP loses\n"
	      "                     IPv6, and its IPv6 addresses\n"
	      "      queues N       receive queues; without it one a core\n"
	      "      cores N,N,...  the CPU that serves each queue; one moves without a "
	      "loss,\n"
	      "                     another number of them makes the device anew; auto:\n"
	      "                     one a core that forwards, served by any\n"
	      "      add makes the TAP, set keeps it with its addresses, del deletes it.\n"
	      "      What is to be there after the next start belongs into the file\n"
	      "      (`fpmctl config show` is one). Examples:\n"
	      "      fpmctl port add wan1 device 0000:03:00.0 mtu 9000\n"
	      "      fpmctl port add wan1 device net_af_packet,iface=eth1\n",
	      out);
}

/* "1,2,1" as a JSON array, auto as it is, NULL when it is neither. */
static json_t *
cores_parse(const char *text)
{
	char copy[CONFIG_CORES_MAX * 8], *rest = copy;
	json_t *cores;

	if (strcmp(text, "auto") == 0)
		return json_string(text);
	if (strlen(text) >= sizeof(copy))
		return NULL;
	strcpy(copy, text);
	cores = json_array();
	for (char *one; (one = strsep(&rest, ",")) != NULL;) {
		long long cpu;

		if (!number_whole(one, &cpu)) {
			json_decref(cores);
			return NULL;
		}
		json_array_append_new(cores, json_integer(cpu));
	}
	return cores;
}

/* Numbers of a port. Which of them it can have is for the daemon to say, who has the device. */
static const struct {
	const char *word;
	int min, max; /* usually: for the message */
} port_number[] = {
	{"mtu", CONFIG_MTU_MIN, CONFIG_MTU_MAX},
	{"queues", 1, CONFIG_CORES_MAX},
};
#define N_PORT_NUMBER (sizeof(port_number) / sizeof(port_number[0]))

/* One pair of words of a port. Returns an exit code, not CTL_OK after a sentence. */
static int
port_pair(json_t *what, const char *word, const char *value)
{
	unsigned int i = 0;
	char want[64];
	json_t *json;
	long long n;

	while (i < N_PORT_NUMBER && strcmp(word, port_number[i].word) != 0)
		i++;
	if (i == N_PORT_NUMBER && strcmp(word, "device") != 0 && strcmp(word, "cores") != 0)
		return unexpected(word, "port");
	if (json_object_get(what, word) != NULL)
		return twice(word, "port");
	if (i < N_PORT_NUMBER && !number_whole(value, &n)) {
		snprintf(want, sizeof(want), "a whole number from %d to %d",
			 port_number[i].min, port_number[i].max);
		return number_refused(word, value, want);
	}
	if (i < N_PORT_NUMBER)
		json = json_integer(n);
	else if (strcmp(word, "cores") == 0)
		json = cores_parse(value);
	else
		json = json_string(value);
	if (json == NULL) /* a device is UTF-8 here */
		return number_refused(word, value,
				      "a list of CPUs by number such as 1,2, nor auto");
	json_object_set_new(what, word, json);
	return CTL_OK;
}

int
port_run(const struct options *opt, int n, char **word)
{
	json_t *what;
	int rc = CTL_OK;

	if (n > 0 && strcmp(word[0], "add") != 0 && strcmp(word[0], "set") != 0 &&
	    strcmp(word[0], "del") != 0)
		return unexpected(word[0], "port");
	if (n < 2) {
		fputs("fpmctl: port add, set or del, a NAME, then pairs such as `mtu "
		      "1400`\n",
		      stderr);
		return usage("port");
	}
	if (n > 2 && strcmp(word[0], "del") == 0) {
		fputs("fpmctl: port del takes a NAME, and nothing else\n", stderr);
		return usage("port");
	}
	if (n % 2 != 0)
		return no_value(word[n - 1], "port");
	what = json_pack("{s:s, s:s}", "do", word[0], "name", word[1]);
	for (int i = 2; i < n && rc == CTL_OK; i += 2)
		rc = port_pair(what, word[i], word[i + 1]);
	if (rc == CTL_OK)
		return change(opt, json_pack("{s:o}", "port", what), NULL);
	json_decref(what);
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

/* As they are said, the daemon's key for each, and the numbers they may be. */
static const struct {
	const char *word, *key, *unit;
	unsigned int min, max; /* least 0: a rate, which may be unlimited */
} rate_key[] = {
	{"rate", "rate", "packets a second", 0, POLICER_RATE_MAX},
	{"burst", "burst", "packets", 1, POLICER_BURST_MAX},
	{"source-rate", "source_rate", "packets a second", 0, POLICER_RATE_MAX},
	{"source-burst", "source_burst", "packets", 1, POLICER_BURST_MAX},
};
#define N_RATE_KEY (sizeof(rate_key) / sizeof(rate_key[0]))

void
set_words(FILE *out, bool classes)
{
	unsigned int n = classes ? N_PUNT_CLASS : N_RATE_KEY;

	for (unsigned int i = 0; i < n; i++)
		fprintf(out, "%s ", classes ? punt_class_info[i].name : rate_key[i].word);
	fputc('\n', out);
}

static bool
on_class(const json_t *row, const char *text, void *ctx)
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

/* One pair of words of a policer. Returns an exit code, not CTL_OK after a sentence. */
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
		return unexpected(word, "set");
	if (json_object_get(request, rate_key[k].key) != NULL)
		return twice(word, "set");
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

int
set_run(const struct options *opt, int n, char **word)
{
	bool json = opt->json;
	json_t *request;
	int rc = CTL_OK;

	if (n > 0 && strcmp(word[0], "policer") != 0)
		return unexpected(word[0], "set");
	if (n < 3) {
		fputs("fpmctl: set policer CLASS, then pairs such as `rate 1000`\n",
		      stderr);
		return usage("set");
	}
	if (n % 2 != 0)
		return no_value(word[n - 1], "set");
	request = json_pack("{s:s, s:s}", "set", "policer", "class", word[1]);
	for (int i = 2; i < n && rc == CTL_OK; i += 2)
		rc = rate_pair(request, word[i], word[i + 1]);
	if (rc == CTL_OK)
		rc = conn_ask(opt->socket, request, on_class, &json);
	json_decref(request);
	return rc;
}
