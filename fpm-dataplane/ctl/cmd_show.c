/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `fpmctl show`: make a request from the words, and print the rows of the answer as a table
 * or as JSON, once or repeatedly. Rows of long answers are printed one by one. Rows with
 * counters are kept if the next answer must show rates.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/filter.h"
#include "base/prefix.h"
#include "ctl/cmd.h"
#include "ctl/conn.h"
#include "ctl/print_rows.h"
#include "ctl/text.h"
#include "ctl/zebra.h"

#define COUNTS   1u  /* has counters, of which --watch and --rates show rates */
#define FAMILY   2u  /* -4 and -6 select rows */
#define ZEROS    4u  /* rows with value 0 are shown only with `all` */
#define SORTED   8u  /* the daemon sends rows in no order; they are sorted here */
#define PREFIXED 16u /* a prefix or an address selects rows */
#define NUMBERED 32u /* the key is a number */

static const struct what {
	const char *show; /* word of the command line and of the request */
	const char *words, *text;
	const char *name; /* key by which the daemon selects a row, NULL: none */
	unsigned int is;
	const char *none; /* printed when the answer has no rows */
} known[] = {
	{"ports", "[NAME]", "ports: link, counters, addresses", "name", COUNTS, "no ports"},
	{"interfaces", "[NAME]",
	 "interfaces of the control namespace, as the kernel reports them", "name", 0,
	 "no interfaces"},
	{"routes", "[PREFIX|ADDRESS] [longest|exact] [vrf NAME] [-4|-6]",
	 "routes; an ADDRESS finds its longest match, a PREFIX only this prefix", NULL,
	 FAMILY | PREFIXED, "no routes"},
	{"fib", "[FAMILY]", "tries of the FIB: prefixes, nodes, memory", "family", 0,
	 "the RIB has not answered yet"},
	{"vrfs", "[NAME]",
	 "VRFs with a FIB: routes, and counters of packets received in them", "name",
	 COUNTS, "no VRFs"},
	{"nexthops", "[ID]",
	 "next hops with an id (zebra, kernel): gateway, interface, state, users",
	 "nexthop_id", NUMBERED,
	 "no next hop has an id; `fpmctl show groups` shows the next hops of routes"},
	{"groups", "[GROUP]", "groups of next hops: members, weights, buckets, routes",
	 "group", NUMBERED, "no groups"},
	{"labels", "[LABEL]", "routes of MPLS labels: new labels, next hops", "label",
	 NUMBERED, "no labels"},
	{"encaps", "[NUMBER]",
	 "label stacks of next hops, with neighbor or tunnel; headends of SRv6", "encap",
	 NUMBERED, "no next hop has labels or segments"},
	{"sids", "[PREFIX|ADDRESS]",
	 "SIDs of SRv6; an ADDRESS finds its SID, a PREFIX the SIDs in it", "sid",
	 COUNTS | SORTED | PREFIXED, "no SIDs"},
	{"rules", "", "rules of policy routing (`ip rule`), and whether they are obeyed",
	 NULL, 0, "the kernel has no rules"},
	{"filter", "[CHAIN]",
	 "the nft ruleset that packets in transit pass: rules, counters", "chain", 0,
	 "no rules of that chain"},
	{"hooks", "[NAME]", "programs of interfaces: packets, verdicts, counters", "dev",
	 COUNTS, "no interface has a program; `fpmctl hook load` gives it one"},
	{"flowspec", "", "the helper for BGP flowspec: its session, table and flows", NULL,
	 0, ""},
	{"sflow", "", "sFlow: settings, collectors, samples of each port", NULL, 0, ""},
	{"bfd", "[PEER]",
	 "BFD sessions of the dataplane; with PEER: details of its sessions", "peer", 0,
	 "the dataplane has no BFD sessions; `fpmctl doctor bfd` tells why"},
	{"warnings", "[KIND]",
	 "configuration of the kernel that the dataplane does not obey", "kind", 0,
	 "no configuration of the kernel was found that the dataplane does not obey"},
	{"neighbors", "[PREFIX|ADDRESS] [-4|-6]", "neighbors and their MAC addresses", NULL,
	 FAMILY | SORTED | PREFIXED, "no neighbors"},
	{"counters", "[all] [NAME]",
	 "drops, punts, totals; without `all` only counters that are not zero", "name",
	 COUNTS | ZEROS, "all counters are zero; `fpmctl show counters all` lists them"},
	{"drops", "[all] [NAME]",
	 "drops by reason: count, meaning, advice; `all`: also the zero counts", "name",
	 COUNTS | ZEROS, "nothing was dropped; `fpmctl show drops all` lists the reasons"},
	{"punt", "[CLASS]", "classes of packets for the host: policers and counters",
	 "class", COUNTS, "no classes"},
	{"fpm", "", "the FPM channel: session, queue, replay, routes", NULL, 0, ""},
	{"kernel", "", "the thread that reads the kernel's routes", NULL, 0, ""},
	{"cycles", "[THREAD]", "cycles of the forwarders, stage by stage", "thread", 0,
	 "no packets yet in timed rounds; one round of 251 with traffic is timed"},
	{"threads", "[NAME]", "threads, with CPU and CPU time", "thread", COUNTS,
	 "no threads"},
	{"memory", "", "memory by use, and limits of tables", NULL, 0, ""},
	{"log", "", "the last 512 lines of the log", NULL, 0, "no lines"},
	{"version", "", "version, uptime, configuration file of the daemon; version of FRR",
	 NULL, 0, ""},
};
#define N_KNOWN (sizeof(known) / sizeof(known[0]))

struct ask {
	const struct options *opt;
	const struct what *what;
	const char *prefix, *name; /* NULL: all */
	const char *vrf;           /* NULL: no VRF was given */
	struct filter filter;
	bool all, has_longest, longest;

	unsigned long long n_rows;
	int write_error;       /* errno of a failed write to stdout */
	json_t *rows;          /* all rows of this answer; NULL: not kept */
	json_t *before;        /* rows of the previous answer */
	double at_s, before_s; /* monotonic */
};

/* --- filter words: base/filter.c has the table, the daemon applies the filter --------- */

/*
 * Add word `k` with its value (NULL: missing). Returns CTL_OK, or CTL_USAGE after printing
 * an error.
 */
static int
filter_word_take(struct filter *c, int k, const char *value)
{
	char why[FILTER_WHY];

	if (filter_take(c, k, value != NULL ? value : "", why, sizeof(why)) == 0)
		return CTL_OK;
	fprintf(stderr, "fpmctl: %s\n", why);
	/* An error that lists the values needs no usage line. */
	return filter_values(k, " ", why, sizeof(why))[0] != '\0' ? CTL_USAGE
								  : cli_usage(&cmd_show);
}

/* Add the filter to the request. */
static void
filter_put(const struct filter *c, json_t *request)
{
	for (int i = 0; i < N_FILTER_WORD; i++)
		if (c->value[i][0] != '\0')
			json_object_set_new(request, filter_word[i].word,
					    json_string(c->value[i]));
}

/* Print the help line of the filter words, "filter: via ADDRESS, dev NAME". */
static void
filter_help(FILE *out, const char *show)
{
	const char *gap = "          filter: ";

	for (int i = 0; i < N_FILTER_WORD; i++)
		if (filter_find(show, filter_word[i].word) == i) {
			fprintf(out, "%s%s %s", gap, filter_word[i].word,
				filter_word[i].value);
			gap = ", ";
		}
	if (gap[0] == ',')
		fputc('\n', out);
}

/* Print for the completion the words that may follow `last`. */
static void
filter_complete(FILE *out, const char *show, const char *last)
{
	int k = filter_find(show, last);
	char buf[FILTER_WHY];

	if (k >= 0)
		fputs(filter_values(k, " ", buf, sizeof(buf)), out);
	else
		fprintf(out, " %s", filter_words(show, buf));
}

/* --- help and completion -------------------------------------------------------------- */

static void
show_help(FILE *out)
{
	for (unsigned int i = 0; i < N_KNOWN; i++) {
		fprintf(out, "      %s%s%s\n          %s\n", known[i].show,
			known[i].words[0] == '\0' ? "" : " ", known[i].words,
			known[i].text);
		filter_help(out, known[i].show);
	}
	fputs("      --watch[=SECONDS]  repeat every SECONDS (1); all but the first have "
	      "rates\n"
	      "      --rates[=SECONDS]  wait SECONDS (1), then show once, with rates\n"
	      "      -4, -6             only this family, for routes and neighbors\n"
	      "      A name, a number, a prefix or an address selects a row. Filters "
	      "select the\n"
	      "      rows that match all of them.\n"
	      "      With --json, --watch prints an array each time, and each counter KEY "
	      "has a\n"
	      "      rate KEY_per_s. Ctrl-C (SIGINT) or SIGTERM end --watch with exit code "
	      "0,\n"
	      "      with --json after a complete array. --watch also ends if its reader "
	      "has\n"
	      "      gone (| head), or if the first answer is an error or has no matching "
	      "row.\n",
	      out);
}

static void
show_complete(FILE *out, int n, char **word)
{
	const char *what = n > 0 ? word[0] : NULL, *last = n > 0 ? word[n - 1] : NULL;

	for (unsigned int i = 0; i < N_KNOWN && what == NULL; i++)
		fprintf(out, "%s%s", i > 0 ? " " : "", known[i].show);
	if (what != NULL && strcmp(what, "routes") == 0 && filter_find(what, last) < 0)
		fputs("longest exact vrf", out);
	if (what != NULL)
		filter_complete(out, what, last);
	fputc('\n', out);
}

/* State of names_on_row(), which prints the member `key` of each row. */
struct names {
	const char *show, *key;
	bool no_totals; /* only reasons, not totals */
	char last[64];  /* the last name: rows of one name are adjacent */
};

static bool
names_on_row(const json_t *row, const char *text, void *ctx)
{
	struct names *names = ctx;
	const char *name = row_str(row, names->key);
	char number[24];

	if (json_is_integer(json_object_get(row, names->key))) {
		snprintf(number, sizeof(number), "%lld", row_int(row, names->key));
		name = number;
	}
	if (names->no_totals && strcmp(row_str(row, "kind"), "total") == 0)
		return true;
	if (name[0] != '\0' && strcmp(name, names->last) != 0)
		printf("%s ", name);
	snprintf(names->last, sizeof(names->last), "%s", name);
	return true;
}

int
show_names(const struct options *opt, const char *what)
{
	struct names names = {0};
	json_t *request;
	int rc;

	for (unsigned int i = 0; i < N_KNOWN; i++)
		if (strcmp(what, known[i].show) == 0 && known[i].name != NULL) {
			names.show = what;
			names.key = known[i].name;
			if ((known[i].is & ZEROS) != 0)
				fputs("all ", stdout);
		}
	if (strcmp(what, "reasons") == 0)
		names = (struct names){
			.show = "counters", .key = "name", .no_totals = true};
	if (names.show == NULL)
		return CTL_OK; /* the rows of this answer have no names */
	request = json_pack("{s:s}", "show", names.show);
	rc = conn_ask(opt->socket, request, names_on_row, &names);
	json_decref(request);
	return rc;
}

/* --- rows ----------------------------------------------------------------------------- */

static bool
row_is_wanted(const struct ask *ask, const json_t *row)
{
	return ask->opt->json || ask->all || ask->name != NULL ||
	       (ask->what->is & ZEROS) == 0 || row_int(row, "value") != 0;
}

/*
 * Print FRR's version after the daemon's, if zebra is found and answers. JSON has only the
 * daemon's row.
 */
static void
version_print_frr(const json_t *row)
{
	char version[FRR_VERSION_STRLEN];
	pid_t zebra = zebra_version_of(row, version);

	if (zebra != 0)
		line_print(4, "    FRR %s, zebra pid %d", version, (int)zebra);
}

static bool
row_print(struct ask *ask, const json_t *row, const char *text)
{
	const struct view *view = view_find(ask->what->show);

	if (!row_is_wanted(ask, row))
		return true;
	errno = 0;
	if (ask->opt->json) {
		json_row_print(ask->n_rows, text);
	} else {
		void (*one)(const json_t *) =
			ask->name != NULL ? view_one(ask->what->show) : NULL;

		if (ask->n_rows == 0 && view->head != NULL && one == NULL)
			view->head();
		(one != NULL ? one : view->row)(row);
		if (strcmp(ask->what->show, "version") == 0)
			version_print_frr(row);
	}
	ask->n_rows++;
	if (ferror(stdout))
		ask->write_error = errno;
	return !ferror(stdout); /* the reader has ended: `| head` */
}

static bool
show_on_row(const json_t *row, const char *text, void *ctx)
{
	struct ask *ask = ctx;

	if (ask->rows == NULL)
		return row_print(ask, row, text);
	return rows_keep(row, text, ask->rows);
}

static struct prefix
row_prefix(const json_t *row)
{
	struct prefix p = {0};

	(void)prefix_parse(row_str(row, row_has(row, "sid") ? "sid" : "address"), &p, NULL);
	return p;
}

/* Compare neighbors, by interface first, or SIDs. */
static int
row_order(const void *a, const void *b)
{
	const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
	struct prefix p = row_prefix(x), q = row_prefix(y);
	int order = strcmp(row_str(x, "dev"), row_str(y, "dev"));

	if (order != 0)
		return order;
	if (p.family != q.family)
		return p.family < q.family ? -1 : 1;
	order = memcmp(&p.addr, &q.addr, sizeof(p.addr));
	return order != 0 ? order : (int)p.len - (int)q.len;
}

/* --- rates ---------------------------------------------------------------------------- */

static const char *const counted[] = {"value",    "rx_packets", "rx_bytes",   "tx_packets",
				      "tx_bytes", "rx_missed",  "rx_errors",  "tx_errors",
				      "passed",   "policed",    "over_share", "ring_full",
				      "cpu_s",    "packets",    "bytes",      "errors",
				      "dropped",  "marked",     "moved"};

/*
 * Find the row with the same name, kind, thread, VRF and table. A drop and a punt may have
 * the same name, and so may SIDs of two VRFs or of two tables.
 */
static const json_t *
row_same(const json_t *rows, const json_t *row, const char *name)
{
	const json_t *other;
	size_t i;

	json_array_foreach (rows, i, other)
		if (strcmp(row_str(other, name), row_str(row, name)) == 0 &&
		    strcmp(row_str(other, "kind"), row_str(row, "kind")) == 0 &&
		    strcmp(row_str(other, "vrf"), row_str(row, "vrf")) == 0 &&
		    row_int(other, "table") == row_int(row, "table") &&
		    row_int(other, "tid") == row_int(row, "tid"))
			return other;
	return NULL;
}

/*
 * Return true if a counter of the row is lower than before. The daemon or the port has
 * started again, and how much the old counters grew is unknown.
 */
static bool
row_began_again(const json_t *was, const json_t *row)
{
	for (unsigned int k = 0; k < sizeof(counted) / sizeof(counted[0]); k++)
		if (row_real(row, counted[k]) < row_real(was, counted[k]))
			return true;
	return false;
}

/* Add KEY_per_s to each row for each counter KEY that it has. */
static void
rates_add(const struct ask *ask)
{
	double seconds = ask->at_s - ask->before_s;
	json_t *row;
	size_t i;

	json_array_foreach (ask->rows, i, row) {
		const json_t *was = row_same(ask->before, row, ask->what->name);

		if (was == NULL || row_began_again(was, row) || seconds <= 0)
			continue;
		for (unsigned int k = 0; k < sizeof(counted) / sizeof(counted[0]); k++) {
			double by = row_real(row, counted[k]) - row_real(was, counted[k]);
			char key[32];

			if (!row_has(row, counted[k]))
				continue;
			snprintf(key, sizeof(key), "%s_per_s", counted[k]);
			json_object_set_new(
				row, key,
				json_real((double)(long long)(by / seconds * 100) / 100));
		}
	}
}

/* --- one answer ----------------------------------------------------------------------- */

static void
kept_print(struct ask *ask)
{
	size_t n = json_array_size(ask->rows);
	const json_t **row = calloc(n + 1, sizeof(const json_t *));

	if (row == NULL)
		abort();
	for (size_t i = 0; i < n; i++)
		row[i] = json_array_get(ask->rows, i);
	if (ask->what->is & SORTED)
		qsort(row, n, sizeof(*row), row_order);
	for (size_t i = 0; i < n; i++) {
		char *text = json_dumps(row[i], JSON_COMPACT);
		bool more = text != NULL && row_print(ask, row[i], text);

		free(text);
		if (!more)
			break;
	}
	free(row);
}

/*
 * Return true if the request is for the prefix itself and not for its longest match: by a
 * word, or because the prefix has a length.
 */
static bool
prefix_is_exact(const struct ask *ask)
{
	return ask->has_longest ? !ask->longest : strchr(ask->prefix, '/') != NULL;
}

/* Print the end of an answer, and a sentence if it has no rows. Returns an exit code. */
static int
show_finish(const struct ask *ask)
{
	bool chosen = ask->prefix != NULL || ask->name != NULL || ask->filter.any;
	char text[FILTER_TEXT];
	int rc = ask->n_rows == 0 && chosen ? CTL_NOT_FOUND : CTL_OK;

	if (ask->opt->json)
		json_rows_end(ask->n_rows);
	else if (rc == CTL_NOT_FOUND && ask->filter.any)
		printf("no rows of %s match %s\n", ask->what->show,
		       filter_text(&ask->filter, text));
	else if (rc == CTL_NOT_FOUND && ask->prefix != NULL &&
		 (ask->what->is & SORTED) == 0)
		printf("no %s %s%s%s%s\n", prefix_is_exact(ask) ? "prefix" : "route to",
		       ask->prefix, ask->vrf != NULL ? " in VRF " : "",
		       ask->vrf != NULL ? ask->vrf : "",
		       prefix_is_exact(ask) ? "; `longest` finds the prefix that covers it"
					    : "");
	else if (rc == CTL_NOT_FOUND)
		printf("no row %s in %s; `fpmctl show %s%s` lists all\n",
		       ask->prefix != NULL ? ask->prefix : ask->name, ask->what->show,
		       ask->what->show, (ask->what->is & ZEROS) != 0 ? " all" : "");
	else if (ask->n_rows == 0)
		puts(ask->what->none);
	return rc;
}

static int
show_ask(struct ask *ask)
{
	json_t *request = json_pack("{s:s}", "show", ask->what->show);
	int rc;

	if (ask->prefix != NULL)
		json_object_set_new(request, "prefix", json_string(ask->prefix));
	if (ask->name != NULL)
		json_object_set_new(request, "name", json_string(ask->name));
	if (ask->vrf != NULL)
		json_object_set_new(request, "vrf", json_string(ask->vrf));
	if (ask->has_longest)
		json_object_set_new(request, "longest", json_boolean(ask->longest));
	if (ask->opt->family != 0)
		json_object_set_new(request, "family", json_integer(ask->opt->family));
	filter_put(&ask->filter, request);
	if (ask->what->is & (SORTED | COUNTS))
		ask->rows = json_array();
	ask->at_s = monotonic_s();
	rc = conn_ask(ask->opt->socket, request, show_on_row, ask);
	json_decref(request);
	return rc;
}

/* Move the rows to `before`, for the computation of the next rates. */
static void
rows_turn(struct ask *ask)
{
	json_decref(ask->before);
	ask->before = ask->rows;
	ask->before_s = ask->at_s;
	ask->rows = NULL;
	ask->n_rows = 0;
}

static int
show_once(struct ask *ask)
{
	int rc = show_ask(ask);

	if (stop_now())
		return CTL_OK;
	if (ask->before != NULL && ask->rows != NULL)
		rates_add(ask);
	if (ask->rows != NULL)
		kept_print(ask);
	if (rc == CTL_OK)
		rc = show_finish(ask);
	else if (rc == CTL_USAGE)
		cli_usage(&cmd_show);
	rc = stdout_flush(rc, ask->write_error);
	rows_turn(ask);
	return rc;
}

static int
show_repeat(struct ask *ask)
{
	bool pages = terminal_obeys() && !ask->opt->json;
	unsigned long long looks = 0; /* repetitions */
	int rc;

	if (ask->opt->watch_s > 0)
		stop_begin(!ask->opt->json);
	if (ask->opt->rates_s > 0) {
		rc = show_ask(ask);
		if (rc == CTL_OK) {
			rows_turn(ask);
			stop_pause(ask->opt->rates_s);
			rc = show_once(ask);
		}
	} else {
		rc = show_once(ask);
	}
	/*
	 * Stop if the first answer has no such row. If a row disappears later, it may
	 * return.
	 */
	while (ask->opt->watch_s > 0 && !ferror(stdout) &&
	       (rc == CTL_OK || (rc == CTL_NOT_FOUND && looks > 0))) {
		looks++;
		stop_pause(ask->opt->watch_s);
		if (stop_wanted())
			break;
		if (pages)
			fputs("\033[H\033[2J", stdout);
		else if (!ask->opt->json)
			putchar('\n');
		rc = show_once(ask);
	}
	json_decref(ask->before);
	json_decref(ask->rows);
	if (stop_wanted() && isatty(STDOUT_FILENO) != 0)
		putchar('\n'); /* after the ^C that the terminal shows */
	return stop_wanted() ? CTL_OK : rc;
}

/* --- words ---------------------------------------------------------------------------- */

/*
 * Parse an ADDRESS or PREFIX. An address with the prefix length of its interface
 * (192.0.2.1/24) stands for the prefix; a note on stderr shows this.
 */
static int
show_take_prefix(struct ask *ask, const char *word)
{
	static char masked[PREFIX_STRLEN];
	struct prefix net;

	ask->prefix = word;
	if (prefix_parse(word, &net, NULL) < 0) {
		fprintf(stderr, "fpmctl: '%s' is not an address or prefix\n", word);
		return CTL_USAGE;
	}
	if (!prefix_text_has_host_bits(word))
		return CTL_OK;
	ask->prefix = prefix_str(&net, masked);
	fprintf(stderr, "fpmctl: %s has host bits set; looking up %s\n", word, ask->prefix);
	return CTL_OK;
}

/* Print an error about words that exclude each other. Returns CTL_USAGE. */
static int
show_contradiction(const char *said)
{
	fprintf(stderr, "fpmctl: %s\n", said);
	return CTL_USAGE;
}

/* Parse the value of the key by which the daemon selects a row. */
static int
show_take_name(struct ask *ask, const char *word)
{
	ask->name = word;
	if ((ask->what->is & NUMBERED) == 0)
		return CTL_OK;
	if (word[0] == '\0' || strspn(word, "0123456789") != strlen(word)) {
		fprintf(stderr, "fpmctl: '%s' is not a number\n", word);
		return cli_usage(&cmd_show);
	}
	while (ask->name[0] == '0' && ask->name[1] != '\0')
		ask->name++; /* 007 is 7 */
	return CTL_OK;
}

/*
 * Parse a word that only routes have, with its value. Returns the number of parsed words; 0
 * if it is no such word; or a negative number after printing an error.
 */
static int
show_take_route_word(struct ask *ask, int n, char **word)
{
	bool longest = strcmp(word[0], "longest") == 0;

	if (strcmp(ask->what->show, "routes") != 0)
		return 0;
	if (longest || strcmp(word[0], "exact") == 0) {
		if (ask->has_longest)
			return -show_contradiction("longest and exact exclude each other: "
						   "give one of them, once");
		ask->has_longest = true;
		ask->longest = longest;
		return 1;
	}
	if (strcmp(word[0], "vrf") != 0)
		return 0;
	if (ask->vrf != NULL)
		return -show_contradiction("vrf is given twice");
	if (n < 2 || word[1][0] == '\0')
		return -show_contradiction("vrf needs NAME; `fpmctl show vrfs` lists them");
	ask->vrf = word[1];
	return 2;
}

/* Check the parsed words against each other. */
static int
show_check_words(const struct ask *ask)
{
	const struct what *what = ask->what;

	if (ask->has_longest && ask->prefix == NULL) {
		fprintf(stderr, "fpmctl: %s needs an ADDRESS or a PREFIX\n",
			ask->longest ? "longest" : "exact");
		return cli_usage(&cmd_show);
	}
	if (ask->opt->family != 0 && (what->is & FAMILY) == 0) {
		fputs("fpmctl: -4 and -6 are for routes and neighbors\n", stderr);
		return cli_usage(&cmd_show);
	}
	if (ask->opt->rates_s > 0 && (what->is & COUNTS) == 0) {
		fprintf(stderr, "fpmctl: %s %s no rates\n", what->show,
			what->show[strlen(what->show) - 1] == 's' ? "have" : "has");
		return cli_usage(&cmd_show);
	}
	return CTL_OK;
}

/* Parse the words after `show WHAT`. Returns CTL_OK or CTL_USAGE. */
static int
show_take_words(struct ask *ask, int n, char **word)
{
	const struct what *what = ask->what;
	int some, chosen;

	for (int i = 0; i < n; i += some) {
		some = show_take_route_word(ask, n - i, word + i);
		if (some < 0)
			return -some;
		if (some > 0)
			continue;
		some = 1;
		chosen = filter_find(what->show, word[i]);
		if (chosen >= 0) {
			if (filter_word_take(&ask->filter, chosen,
					     i + 1 < n ? word[i + 1] : NULL) != CTL_OK)
				return CTL_USAGE;
			some = 2;
		} else if ((what->is & PREFIXED) != 0 && ask->prefix == NULL) {
			if (show_take_prefix(ask, word[i]) != CTL_OK)
				return cli_usage(&cmd_show);
		} else if ((what->is & ZEROS) != 0 && strcmp(word[i], "all") == 0) {
			if (ask->all)
				return show_contradiction("all is given twice");
			ask->all = true;
		} else if (what->name != NULL && ask->name == NULL &&
			   (what->is & PREFIXED) == 0) {
			if (show_take_name(ask, word[i]) != CTL_OK)
				return CTL_USAGE;
		} else {
			return cli_unexpected(word[i], &cmd_show);
		}
	}
	return show_check_words(ask);
}

static int
show_run(const struct options *opt, int n, char **word)
{
	struct ask ask = {.opt = opt};
	const char *meant = NULL;

	if (n == 0) {
		fputs("fpmctl: show needs a WHAT\n", stderr);
		return cli_usage(&cmd_show);
	}
	for (unsigned int i = 0; i < N_KNOWN; i++)
		if (strcmp(word[0], known[i].show) == 0)
			ask.what = &known[i];
		else if (meant == NULL && word_is_near(word[0], known[i].show))
			meant = known[i].show;
	if (ask.what == NULL)
		return cli_unexpected_but(word[0], meant, &cmd_show);
	if (show_take_words(&ask, n - 1, word + 1) != CTL_OK)
		return CTL_USAGE;
	return show_repeat(&ask);
}

const struct command cmd_show = {
	.name = "show",
	.words = "WHAT ...",
	.text = "show state of the daemon: `fpmctl help show` lists WHAT",
	.run = show_run,
	.options = OPT_JSON | OPT_FAMILY | OPT_TIMES,
	.help = show_help,
	.complete = show_complete,
};
