/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `fpmctl show`: words to a request, its rows to a table or to JSON.
 */
#include "ctl/ctl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/prefix.h"

struct ask {
	const struct options *opt;
	const char *show, *prefix;
	bool all, has_longest, longest;

	unsigned long long n_rows;
	int write_error;  /* errno of a failed write to stdout */
	json_t *unsorted; /* rows of neighbors, which the daemon has in no order */
};

static const struct {
	const char *show, *words, *text;
} known[] = {
	{"ports", "", "ports: link, counters, addresses"},
	{"routes", " [PREFIX|ADDRESS] [longest|exact] [-4|-6]",
	 "routes; an ADDRESS finds its longest match, a PREFIX itself"},
	{"nexthops", "", "next-hop groups and how many routes use them"},
	{"neighbors", " [-4|-6]", "neighbours and their MAC addresses"},
	{"counters", " [all]",
	 "drops, punts, totals; without `all` those that are not zero"},
	{"punt", "", "classes of packets for the host: their policers, and what they did"},
	{"fpm", "", "the channel to zebra, and what came of it"},
	{"cycles", "", "where the forwarders' time goes, stage by stage"},
	{"memory", "", "memory, by what it is used for"},
	{"version", "", "version, uptime, configuration file of the daemon"},
};

void
show_help(FILE *out)
{
	for (unsigned int i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		fprintf(out, "      %s%s\n          %s\n", known[i].show, known[i].words,
			known[i].text);
}

static bool
row_print(struct ask *ask, const json_t *row, const char *text)
{
	const struct view *view = view_find(ask->show);

	errno = 0;
	if (ask->opt->json) {
		printf("%s%s", ask->n_rows == 0 ? "[" : ",\n", text);
	} else if (strcmp(ask->show, "counters") == 0 && !ask->all &&
		   row_int(row, "value") == 0) {
		return true;
	} else {
		if (ask->n_rows == 0 && view->head != NULL)
			view->head();
		view->row(row);
	}
	ask->n_rows++;
	if (ferror(stdout))
		ask->write_error = errno;
	return !ferror(stdout); /* nobody reads any more: `| head` */
}

static bool
on_row(const json_t *row, const char *text, void *ctx)
{
	struct ask *ask = ctx;

	if (ask->unsorted == NULL)
		return row_print(ask, row, text);
	return json_array_append(ask->unsorted, (json_t *)(uintptr_t)row) == 0;
}

static int
by_device_and_address(const void *a, const void *b)
{
	const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
	struct prefix p = {0}, q = {0};
	int order = strcmp(row_str(x, "dev"), row_str(y, "dev"));

	if (order != 0)
		return order;
	(void)prefix_parse(row_str(x, "address"), &p, NULL);
	(void)prefix_parse(row_str(y, "address"), &q, NULL);
	if (p.family != q.family)
		return p.family < q.family ? -1 : 1;
	return memcmp(&p.addr, &q.addr, sizeof(p.addr));
}

/* Rows that were kept until all of them were there. */
static void
sorted_print(struct ask *ask)
{
	size_t n = json_array_size(ask->unsorted);
	const json_t **row = calloc(n + 1, sizeof(const json_t *));

	if (row == NULL)
		abort();
	for (size_t i = 0; i < n; i++)
		row[i] = json_array_get(ask->unsorted, i);
	qsort(row, n, sizeof(*row), by_device_and_address);
	for (size_t i = 0; i < n; i++) {
		char *text = json_dumps(row[i], JSON_COMPACT);
		bool more = text != NULL && row_print(ask, row[i], text);

		free(text);
		if (!more)
			break;
	}
	free(row);
	json_decref(ask->unsorted);
}

/* The answer is complete; what there is to say about none or no rows. */
static int
finish(const struct ask *ask)
{
	int rc = ask->n_rows == 0 && ask->prefix != NULL ? CTL_NOT_FOUND : CTL_OK;

	if (ask->opt->json)
		puts(ask->n_rows == 0 ? "[]" : "]");
	else if (rc == CTL_NOT_FOUND)
		printf("no route to %s\n", ask->prefix);
	else if (ask->n_rows == 0 && strcmp(ask->show, "counters") == 0)
		puts("all counters are zero; `fpmctl show counters all` lists them");
	else if (ask->n_rows == 0)
		printf("no %s\n", ask->show);
	return rc;
}

/* The exit code when all has been written, or could not be. */
int
flushed(int rc, int error)
{
	static bool told; /* once is enough */

	if (error == 0 && fflush(stdout) != 0)
		error = errno;
	/* A reader that has seen enough (`| head`) is no error. */
	if (error == 0 || error == EPIPE)
		return rc;
	if (!told)
		fprintf(stderr, "fpmctl: cannot write: %s\n", strerror(error));
	told = true;
	return CTL_NO_DAEMON;
}

static int
run(struct ask *ask)
{
	json_t *request = json_pack("{s:s}", "show", ask->show);
	int rc;

	if (ask->prefix != NULL)
		json_object_set_new(request, "prefix", json_string(ask->prefix));
	if (ask->has_longest)
		json_object_set_new(request, "longest", json_boolean(ask->longest));
	if (ask->opt->family != 0)
		json_object_set_new(request, "family", json_integer(ask->opt->family));
	if (strcmp(ask->show, "neighbors") == 0)
		ask->unsorted = json_array();
	rc = conn_ask(ask->opt->socket, request, on_row, ask);
	json_decref(request);
	if (ask->unsorted != NULL)
		sorted_print(ask);
	if (rc == CTL_OK)
		rc = finish(ask);
	else if (rc == CTL_USAGE)
		usage("show");
	return flushed(rc, ask->write_error);
}

/*
 * An ADDRESS or PREFIX. An address with its interface's length (192.0.2.1/24) means the
 * prefix: it is looked up, and said on stderr, where no script trips over it.
 */
static int
take_prefix(struct ask *ask, const char *word)
{
	static char masked[PREFIX_STRLEN];
	struct prefix net, given;
	bool is_addr;
	char addr[PREFIX_STRLEN];

	ask->prefix = word;
	if (prefix_parse(word, &net, &is_addr) < 0) {
		fprintf(stderr, "fpmctl: '%s' is not an address or prefix\n", word);
		return CTL_USAGE;
	}
	snprintf(addr, sizeof(addr), "%.*s", (int)strcspn(word, "/"), word);
	if (is_addr || prefix_parse(addr, &given, NULL) < 0 ||
	    memcmp(&given.addr, &net.addr, sizeof(net.addr)) == 0)
		return CTL_OK;
	ask->prefix = prefix_str(&net, masked);
	fprintf(stderr, "fpmctl: %s has host bits set; looking up %s\n", word, ask->prefix);
	return CTL_OK;
}

/* Words after `show WHAT`. Returns CTL_OK or CTL_USAGE. */
static int
take_words(struct ask *ask, int n, char **word)
{
	bool routes = strcmp(ask->show, "routes") == 0;

	for (int i = 0; i < n; i++) {
		bool longest = strcmp(word[i], "longest") == 0;

		if (routes && ask->prefix != NULL && !ask->has_longest &&
		    (longest || strcmp(word[i], "exact") == 0)) {
			ask->has_longest = true;
			ask->longest = longest;
		} else if (routes && ask->prefix == NULL && i == 0) {
			if (take_prefix(ask, word[i]) != CTL_OK)
				return usage("show");
		} else if (strcmp(ask->show, "counters") == 0 &&
			   strcmp(word[i], "all") == 0) {
			ask->all = true;
		} else {
			return unexpected(word[i], "show");
		}
	}
	if (ask->opt->family != 0 && !routes && strcmp(ask->show, "neighbors") != 0) {
		fputs("fpmctl: -4 and -6 choose routes or neighbors\n", stderr);
		return usage("show");
	}
	return CTL_OK;
}

int
show_run(const struct options *opt, int n, char **word)
{
	struct ask ask = {.opt = opt};

	if (n == 0) {
		fputs("fpmctl: show what?\n", stderr);
		return usage("show");
	}
	ask.show = word[0];
	if (view_find(ask.show) == NULL)
		return unexpected(ask.show, "show");
	if (take_words(&ask, n - 1, word + 1) != CTL_OK)
		return CTL_USAGE;
	return run(&ask);
}
