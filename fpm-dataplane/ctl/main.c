/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fpmctl: words of the command line to one request, its answer to a table or to JSON, what
 * became of it to the exit code. Holds no state between runs.
 */
#include "ctl/ctl.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/prefix.h"
#include "ctl/words.h"

#ifndef FPMDP_VERSION
#define FPMDP_VERSION "unknown"
#endif

static const struct {
	const char *show, *words, *text;
} command[] = {
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
	{"version", "", "version, uptime, configuration of the daemon"},
};
#define N_COMMAND (sizeof(command) / sizeof(command[0]))

struct ask {
	const char *socket, *show, *prefix;
	bool json, all, has_longest, longest;
	int family; /* 0: both */

	unsigned long long n_rows;
	int write_error;  /* errno of a failed write to stdout */
	json_t *unsorted; /* rows of neighbors, which the daemon has in no order */
};

static int
usage(const char *show)
{
	for (unsigned int i = 0; i < N_COMMAND && show != NULL; i++)
		if (strcmp(show, command[i].show) == 0) {
			fprintf(stderr, "usage: fpmctl [-s SOCKET] [--json] show %s%s\n",
				show, command[i].words);
			return CTL_USAGE;
		}
	fputs("usage: fpmctl [-s SOCKET] [--json] show "
	      "ports|routes|nexthops|neighbors|counters|punt|cycles|fpm|memory|version\n"
	      "       fpmctl [-s SOCKET] set policer CLASS [rate N] [burst N] "
	      "[source-rate N] [source-burst N]\n"
	      "       fpmctl [-s SOCKET] [--json] audit [--repair] [--vtysh COMMAND]\n"
	      "       fpmctl [-s SOCKET] replay | restart\n"
	      "       fpmctl [-s SOCKET] [--json] explain dst ADDRESS [port NAME] [WORDS]\n"
	      "       fpmctl [-s SOCKET] [--json] trace [WORDS]\n"
	      "       fpmctl [-s SOCKET] capture -w FILE|- [WORDS]\n"
	      "       fpmctl help\n",
	      stderr);
	return CTL_USAGE;
}

static void
help(void)
{
	puts("usage: fpmctl [-s SOCKET] [--json] show WHAT ...\n\nWHAT is one of");
	for (unsigned int i = 0; i < N_COMMAND; i++)
		printf("  %s%s\n      %s\n", command[i].show, command[i].words,
		       command[i].text);
	puts("\nfpmctl audit [--repair] [--vtysh COMMAND]\n"
	     "      compare what zebra has, the RIB and the FIB; print what differs\n"
	     "      --repair          write the FIB again, ask zebra for a replay\n"
	     "      --vtysh COMMAND   how to ask zebra (vtysh), such as 'vtysh -N r1'\n"
	     "fpmctl set policer CLASS [rate N] [burst N] [source-rate N] [source-burst "
	     "N]\n"
	     "      packets a second (or unlimited; 0: none) and packets, of a class and "
	     "of\n"
	     "      each source in it, until the daemon ends; `show punt` has the classes\n"
	     "fpmctl replay\n"
	     "      have zebra connect anew and say everything again\n"
	     "fpmctl restart\n"
	     "      end the daemon and have it started again (systemd, fpm-supervise): "
	     "after\n"
	     "      an upgrade, or for a new configuration; sessions stay, transit rests a "
	     "second\n"
	     "fpmctl explain dst ADDRESS [port NAME] [WORDS]\n"
	     "      what would become of a packet, stage by stage; nothing is sent");
	words_help(stdout, WORDS_EXPLAIN);
	puts("fpmctl trace [WORDS]\n"
	     "      what becomes of live packets, stage by stage (10 of them)");
	words_help(stdout, WORDS_TRACE);
	puts("fpmctl capture -w FILE|- [WORDS]\n"
	     "      live packets as pcapng, a dropped one with the reason as its comment");
	words_help(stdout, WORDS_CAPTURE);
	printf("\n  -s, --socket SOCKET  the daemon's control socket; else $FPMCTL_SOCKET, "
	       "else\n"
	       "                       " CTL_SOCKET "\n"
	       "      --json           one JSON array; the keys are stable\n"
	       "      --version        of fpmctl itself\n\n"
	       "Exit codes: 0 done, 1 no daemon or connection lost, 2 wrong words, "
	       "3 nothing found,\nor found to differ; of explain: the packet would be "
	       "dropped.\n");
}

static bool
row_print(struct ask *ask, const json_t *row, const char *text)
{
	const struct view *view = view_find(ask->show);

	errno = 0;
	if (ask->json) {
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

	if (ask->json)
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
static int
flushed(int rc, int error)
{
	if (error == 0 && fflush(stdout) != 0)
		error = errno;
	/* A reader that has seen enough (`| head`) is no error. */
	if (error == 0 || error == EPIPE)
		return rc;
	fprintf(stderr, "fpmctl: cannot write: %s\n", strerror(error));
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
	if (ask->family != 0)
		json_object_set_new(request, "family", json_integer(ask->family));
	if (strcmp(ask->show, "neighbors") == 0)
		ask->unsorted = json_array();
	rc = conn_ask(ask->socket, request, on_row, ask);
	json_decref(request);
	if (ask->unsorted != NULL)
		sorted_print(ask);
	if (rc == CTL_OK)
		rc = finish(ask);
	else if (rc == CTL_USAGE)
		usage(ask->show);
	return flushed(rc, ask->write_error);
}

static int
replay(const char *socket)
{
	json_t *request = json_pack("{s:s}", "do", "replay");
	int rc = conn_ask(socket, request, NULL, NULL);

	json_decref(request);
	if (rc == CTL_OK)
		puts("The FPM session is closed; zebra connects again within 3 s and "
		     "replays.\nForwarding goes on meanwhile. `fpmctl show fpm` shows the "
		     "progress.");
	return flushed(rc, 0);
}

static int
restart(const char *socket)
{
	json_t *request = json_pack("{s:s}", "do", "restart");
	int rc = conn_ask(socket, request, NULL, NULL);

	json_decref(request);
	if (rc == CTL_OK)
		puts("It ends and is started again; `fpmctl show version` tells when it is "
		     "back.");
	return flushed(rc, 0);
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

/* Words after `set policer`. */
static int
set_policer(const struct ask *ask, int n, char **word)
{
	static const char *const key[][2] = {{"rate", "rate"},
					     {"burst", "burst"},
					     {"source-rate", "source_rate"},
					     {"source-burst", "source_burst"}};
	bool json = ask->json;
	json_t *request;
	int rc;

	if (n < 3 || n % 2 == 0) {
		fputs("fpmctl: set policer CLASS, then pairs such as `rate 1000`\n",
		      stderr);
		return usage(NULL);
	}
	request = json_pack("{s:s, s:s}", "set", "policer", "class", word[0]);
	for (int i = 1; i < n; i += 2) {
		unsigned int k = 0;
		char *end;
		long long value = strtoll(word[i + 1], &end, 10);

		while (k < 4 && strcmp(word[i], key[k][0]) != 0)
			k++;
		if (k == 4) {
			json_decref(request);
			fprintf(stderr, "fpmctl: unexpected word '%s'\n", word[i]);
			return usage(NULL);
		}
		/* What is no number is the daemon's to judge: `unlimited` is one of its words. */
		json_object_set_new(request, key[k][1],
				    *end == '\0' && end != word[i + 1]
					    ? json_integer(value)
					    : json_string(word[i + 1]));
	}
	rc = conn_ask(ask->socket, request, on_class, &json);
	json_decref(request);
	return flushed(rc, 0);
}

static int
unexpected(const char *word, const char *show)
{
	fprintf(stderr, "fpmctl: unexpected word '%s'\n", word);
	return usage(show);
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
				return usage(ask->show);
		} else if (strcmp(ask->show, "counters") == 0 &&
			   strcmp(word[i], "all") == 0) {
			ask->all = true;
		} else {
			return unexpected(word[i], ask->show);
		}
	}
	if (ask->family != 0 && !routes && strcmp(ask->show, "neighbors") != 0) {
		fputs("fpmctl: -4 and -6 choose routes or neighbors\n", stderr);
		return usage(ask->show);
	}
	return CTL_OK;
}

/* A closed descriptor 1 would become the socket, and rows requests. */
static void
stdio_secure(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) < 0)
			exit(CTL_NO_DAEMON);
	signal(SIGPIPE, SIG_IGN);
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {
		{"socket", required_argument, NULL, 's'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'v'},
		{"repair", no_argument, NULL, 'r'},
		{"write", required_argument, NULL, 'w'},
		{"vtysh", required_argument, NULL, 'V'},
		{NULL, 0, NULL, 0},
	};
	struct ask ask = {.socket = getenv("FPMCTL_SOCKET")};
	const char *vtysh = NULL, *file = NULL;
	bool repair = false;
	int opt;

	stdio_secure();
	if (ask.socket == NULL || ask.socket[0] == '\0')
		ask.socket = CTL_SOCKET;
	while ((opt = getopt_long(argc, argv, "s:jhw:46", options, NULL)) != -1) {
		switch (opt) {
		case 's':
			ask.socket = optarg;
			break;
		case 'j':
			ask.json = true;
			break;
		case 'h':
			help();
			return flushed(CTL_OK, 0);
		case 'v':
			puts("fpmctl " FPMDP_VERSION);
			return flushed(CTL_OK, 0);
		case 'r':
			repair = true;
			break;
		case 'w':
			file = optarg;
			break;
		case 'V':
			vtysh = optarg;
			break;
		case '4':
		case '6':
			ask.family = opt - '0';
			break;
		default:
			return usage(NULL);
		}
	}
	argc -= optind;
	argv += optind;
	if (argc >= 1 && strcmp(argv[0], "help") == 0) {
		if (argc > 1)
			return unexpected(argv[1], NULL);
		help();
		return flushed(CTL_OK, 0);
	}
	if (argc == 0)
		return usage(NULL);
	if (strcmp(argv[0], "audit") == 0 && argc == 1)
		return flushed(audit_run(ask.socket, vtysh != NULL ? vtysh : "vtysh",
					 repair, ask.json),
			       0);
	if (repair || vtysh != NULL) {
		fputs("fpmctl: --repair and --vtysh belong to audit\n", stderr);
		return usage(NULL);
	}
	if (strcmp(argv[0], "capture") == 0)
		return flushed(
			watch_run(ask.socket, true, file, ask.json, argc - 1, argv + 1), 0);
	if (file != NULL) {
		fputs("fpmctl: -w belongs to capture\n", stderr);
		return usage(NULL);
	}
	if (strcmp(argv[0], "trace") == 0)
		return flushed(
			watch_run(ask.socket, false, NULL, ask.json, argc - 1, argv + 1),
			0);
	if (strcmp(argv[0], "explain") == 0)
		return flushed(explain_run(ask.socket, ask.json, argc - 1, argv + 1), 0);
	if (strcmp(argv[0], "replay") == 0 && argc == 1)
		return replay(ask.socket);
	if (strcmp(argv[0], "restart") == 0 && argc == 1)
		return restart(ask.socket);
	if (strcmp(argv[0], "audit") == 0 || strcmp(argv[0], "replay") == 0 ||
	    strcmp(argv[0], "restart") == 0)
		return unexpected(argv[1], NULL);
	if (strcmp(argv[0], "set") == 0 && argc >= 2 && strcmp(argv[1], "policer") == 0)
		return set_policer(&ask, argc - 2, argv + 2);
	if (strcmp(argv[0], "show") != 0)
		return unexpected(argv[0], NULL);
	if (argc == 1) {
		fputs("fpmctl: show what?\n", stderr);
		return usage(NULL);
	}
	ask.show = argv[1];
	if (view_find(ask.show) == NULL)
		return unexpected(ask.show, NULL);
	if (take_words(&ask, argc - 2, argv + 2) != CTL_OK)
		return CTL_USAGE;
	return run(&ask);
}
