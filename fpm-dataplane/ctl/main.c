/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fpmctl: parse the options, run the command, return its exit code. No state between runs.
 */
#include "ctl/cmd.h"

#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#ifndef FPMDP_VERSION
#define FPMDP_VERSION "unknown"
#endif

/*
 * Open /dev/null for closed descriptors. Otherwise the socket could become descriptor 1,
 * and rows would go to the daemon as requests.
 */
static void
stdio_secure(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) < 0)
			exit(CTL_NO_DAEMON);
	signal(SIGPIPE, SIG_IGN);
}

/*
 * Parse the seconds of --watch and --rates. `next` (NULL: none) is the word after an
 * option without a value. It is refused if it is a number, because the value must follow a
 * '='.
 */
static int
option_take_seconds(const char *name, const char *text, const char *next, double *out)
{
	double seconds = 1;
	char *end;

	if (text != NULL &&
	    (!number_decimal(text, &seconds) || seconds < 0.1 || seconds > 86400))
		return number_refused(name, text, "a number of seconds from 0.1 to 86400");
	if (text == NULL && next != NULL && (strtod(next, &end), end != next) &&
	    strspn(end, "s") == strlen(end)) {
		fprintf(stderr, "fpmctl: %s takes its seconds after a '=', as in %s=5\n",
			name, name);
		return CTL_USAGE;
	}
	if (*out != 0 && *out != seconds) {
		fprintf(stderr, "fpmctl: %s is given twice, as %g and %g: give one\n", name,
			*out, seconds);
		return CTL_USAGE;
	}
	*out = seconds;
	return CTL_OK;
}

/* Store the value of an option. The same value may be given again. */
static int
option_take_text(const char *name, const char *text, const char **out)
{
	if (text[0] == '\0') {
		fprintf(stderr, "fpmctl: %s needs a value\n", name);
		return CTL_USAGE;
	}
	if (*out != NULL && strcmp(*out, text) != 0) {
		fprintf(stderr, "fpmctl: %s is given twice, as '%s' and '%s': give one\n",
			name, *out, text);
		return CTL_USAGE;
	}
	*out = text;
	return CTL_OK;
}

static int
option_take_family(int family, int *out)
{
	if (*out != 0 && *out != family) {
		fputs("fpmctl: -4 and -6 exclude each other; without them both families "
		      "are shown\n",
		      stderr);
		return CTL_USAGE;
	}
	*out = family;
	return CTL_OK;
}

/* Refuse options that belong to another command. Returns CTL_OK or CTL_USAGE. */
static int
options_check(const struct command *c, unsigned int given)
{
	static const struct {
		unsigned int bit;
		const char *text;
	} of[] = {{OPT_REPAIR, "--repair is for audit"},
		  {OPT_VTYSH, "--vtysh is for audit and doctor"},
		  {OPT_FILE, "-w is for capture"},
		  {OPT_FAMILY, "-4 and -6 are for routes and neighbors"},
		  {OPT_DRY_RUN, "--dry-run is for config reload"},
		  {OPT_FORCE, "--force is for device bind"},
		  {OPT_TIMES, "--watch and --rates are for show"},
		  {OPT_JSON, "--json is for commands with rows: not for capture and help"}};

	for (unsigned int i = 0; i < sizeof(of) / sizeof(of[0]); i++)
		if ((given & of[i].bit & ~c->options) != 0) {
			fprintf(stderr, "fpmctl: %s\n", of[i].text);
			return cli_usage(c);
		}
	return CTL_OK;
}

/*
 * Print the error of getopt(). `given` is the argument with the error, or the argument
 * after it. Returns CTL_USAGE.
 */
static int
option_refuse(int opt, const char *given)
{
	char one[] = {'-', (char)optopt, '\0'};
	bool is_long = strncmp(given, "--", 2) == 0;

	if (opt == ':')
		fprintf(stderr, "fpmctl: %s needs a value\n", is_long ? given : one);
	else if (optopt != 0 && is_long)
		fprintf(stderr, "fpmctl: %.*s takes no value\n", (int)strcspn(given, "="),
			given);
	else if (optopt >= '0' && optopt <= '9')
		fprintf(stderr,
			"fpmctl: unknown option -%c (no number of fpmctl is below 0)\n",
			optopt);
	else
		fprintf(stderr,
			"fpmctl: unknown option %s (words take no dashes; see `fpmctl "
			"help`)\n",
			is_long ? given : one);
	return CTL_USAGE;
}

/*
 * Refuse words that are malformed UTF-8: JSON would leave them out, and the request would
 * have another meaning. File names may have any octet.
 */
static int
words_check_utf8(const struct command *c, int n, char **word)
{
	for (int i = 0; i < n; i++) {
		json_t *json;

		if (c->file_word != 0 && i == c->file_word)
			continue;
		json = json_string(word[i]);
		json_decref(json);
		if (json == NULL) {
			fprintf(stderr, "fpmctl: word %d after %s is not UTF-8\n", i + 1,
				c->name);
			return CTL_USAGE;
		}
	}
	return CTL_OK;
}

/* The options that do work of their own in place of a command. */
struct instead {
	bool version, help, complete;
	const char *names; /* of --complete: the name of the list; NULL: none */
};

/*
 * Store one option that getopt_long() returned. `word` is the argument with it, `next`
 * (NULL: none) the argument after it. Returns CTL_OK or CTL_USAGE.
 */
static int
option_take(int opt, struct options *o, unsigned int *given, struct instead *instead,
	    const char *word, const char *next)
{
	switch (opt) {
	case 's':
		return option_take_text("-s", optarg, &o->socket);
	case 'j':
		o->json = true;
		*given |= OPT_JSON;
		return CTL_OK;
	case 'h':
		instead->help = true;
		return CTL_OK;
	case 'v':
		instead->version = true;
		return CTL_OK;
	case 'r':
		o->repair = true;
		*given |= OPT_REPAIR;
		return CTL_OK;
	case 'w':
		*given |= OPT_FILE;
		return option_take_text("-w", optarg, &o->file);
	case 'V':
		*given |= OPT_VTYSH;
		return option_take_text("--vtysh", optarg, &o->vtysh);
	case 'n':
		o->dry_run = true;
		*given |= OPT_DRY_RUN;
		return CTL_OK;
	case 'F':
		o->force = true;
		*given |= OPT_FORCE;
		return CTL_OK;
	case 'W':
		*given |= OPT_TIMES;
		return option_take_seconds("--watch", optarg, next, &o->watch_s);
	case 'R':
		*given |= OPT_TIMES;
		return option_take_seconds("--rates", optarg, next, &o->rates_s);
	case 'C':
		instead->complete = true;
		instead->names = optarg;
		return CTL_OK;
	case '4':
	case '6':
		*given |= OPT_FAMILY;
		return option_take_family(opt - '0', &o->family);
	default:
		return option_refuse(opt, word);
	}
}

/* Choose the control socket: the option, the environment, or the path of the package. */
static void
socket_choose(struct options *o)
{
	if (o->socket == NULL)
		o->socket = getenv("FPMCTL_SOCKET");
	if (o->socket == NULL || o->socket[0] == '\0')
		o->socket = CTL_SOCKET;
}

/* Run --help or --complete. Returns -1 if neither is given, or the exit code. */
static int
instead_run(const struct instead *instead, struct options *o, int argc, char **argv)
{
	if (instead->help) /* help about the command that follows, if there is one */
		return cmd_help.run(o, optind < argc && command_find(argv[optind]) != NULL,
				    argv + optind);
	if (!instead->complete)
		return -1;
	if (instead->names != NULL)
		return show_names(o, instead->names);
	command_complete(stdout, argc - optind, argv + optind);
	return CTL_OK;
}

/*
 * Parse all options, and run --version, --help and --complete.
 * Returns -1 to continue, or the exit code.
 */
static int
options_take(struct options *o, unsigned int *given, int argc, char **argv)
{
	static const struct option options[] = {
		{"socket", required_argument, NULL, 's'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'v'},
		{"repair", no_argument, NULL, 'r'},
		{"write", required_argument, NULL, 'w'},
		{"vtysh", required_argument, NULL, 'V'},
		{"dry-run", no_argument, NULL, 'n'},
		{"force", no_argument, NULL, 'F'},
		{"watch", optional_argument, NULL, 'W'},
		{"rates", optional_argument, NULL, 'R'},
		{"complete", optional_argument, NULL, 'C'},
		{NULL, 0, NULL, 0},
	};
	struct instead instead = {0};
	int opt, rc;

	while ((opt = getopt_long(argc, argv, ":s:jhw:46", options, NULL)) != -1) {
		rc = option_take(opt, o, given, &instead, argv[optind - 1], argv[optind]);
		if (rc != CTL_OK)
			return rc;
		if (instead.version) {
			puts("fpmctl " FPMDP_VERSION);
			return CTL_OK;
		}
	}
	socket_choose(o);
	return instead_run(&instead, o, argc, argv);
}

int
main(int argc, char **argv)
{
	struct options o = {0};
	const struct command *c;
	unsigned int given = 0;
	int rc;

	stdio_secure();
	rc = options_take(&o, &given, argc, argv);
	if (rc >= 0)
		return stdout_flush(rc, 0);
	if (optind == argc)
		return cli_usage(NULL);
	c = command_find(argv[optind]);
	if (c == NULL)
		return cli_unexpected_but(argv[optind], command_nearest(argv[optind]),
					  NULL);
	if (options_check(c, given) != CTL_OK ||
	    words_check_utf8(c, argc - optind - 1, argv + optind + 1) != CTL_OK)
		return CTL_USAGE;
	return stdout_flush(c->run(&o, argc - optind - 1, argv + optind + 1), 0);
}
