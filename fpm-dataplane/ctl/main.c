/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fpmctl: options and the command, help, and what became of it as an exit code. Holds no
 * state between runs. The table of commands is also what the completion and the manual page
 * are made from.
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

#include "ctl/number.h"
#include "ctl/words.h"

#ifndef FPMDP_VERSION
#define FPMDP_VERSION "unknown"
#endif

static int
audit(const struct options *opt, int n, char **word)
{
	if (n > 0)
		return unexpected(word[0], "audit");
	return audit_run(opt->socket, opt->vtysh, opt->repair, opt->json);
}

static int
explain(const struct options *opt, int n, char **word)
{
	return explain_run(opt->socket, opt->json, n, word);
}

static int
trace(const struct options *opt, int n, char **word)
{
	return watch_run(opt->socket, false, NULL, opt->json, n, word);
}

static int
capture(const struct options *opt, int n, char **word)
{
	return watch_run(opt->socket, true, opt->file, opt->json, n, word);
}

static int
doctor(const struct options *opt, int n, char **word)
{
	return doctor_run(opt->socket, opt->vtysh, opt->json, n, word);
}

/* Have the daemon do a thing that has no rows. */
static int
have_done(const struct options *opt, const char *what)
{
	json_t *request = json_pack("{s:s}", "do", what);
	int rc = conn_ask(opt->socket, request, NULL, NULL);

	json_decref(request);
	if (rc == CTL_OK && opt->json)
		json_rows_end(0);
	return rc;
}

static int
replay(const struct options *opt, int n, char **word)
{
	int rc = n > 0 ? unexpected(word[0], "replay") : have_done(opt, "replay");

	if (rc == CTL_OK && !opt->json)
		puts("The FPM session is closed; zebra connects again within 3 s and "
		     "replays.\nForwarding goes on meanwhile. `fpmctl show fpm` shows the "
		     "progress.");
	return rc;
}

static void
help_hold(FILE *out)
{
	fputs("      before FRR is stopped: it ends its daemons before zebra, which\n"
	      "      withdraws their routes meanwhile. After SECONDS, 0 to 3600, else\n"
	      "      120, this zebra may come back. The unit fpm-dataplane-hold does it\n"
	      "      whenever systemd restarts frr\n",
	      out);
}

static void
help_restart(FILE *out)
{
	fputs("      after an upgrade, or for a new configuration; sessions stay, transit "
	      "rests\n      some milliseconds, or while NICs start. Under systemd or "
	      "fpm-supervise.\n"
	      "      Waits until it has happened; what could not start is refused, and "
	      "the\n"
	      "      daemon forwards on. Meanwhile nothing else can be changed\n",
	      out);
}

static void
help_explain(FILE *out)
{
	words_help(out, WORDS_EXPLAIN);
}

static void
help_trace(FILE *out)
{
	words_help(out, WORDS_TRACE);
}

static void
help_capture(FILE *out)
{
	words_help(out, WORDS_CAPTURE);
}

#define OPT_REPAIR  1u
#define OPT_VTYSH   2u
#define OPT_FILE    4u
#define OPT_FAMILY  8u
#define OPT_DRY_RUN 16u
#define OPT_TIMES   32u
#define OPT_FORCE   64u
#define OPT_JSON    128u

static int help(const struct options *opt, int n, char **word);

static const struct command {
	const char *name, *words, *text;
	int (*run)(const struct options *opt, int n, char **word);
	unsigned int options;    /* OPT_: those that belong to it */
	void (*more)(FILE *out); /* its words; NULL: none */
} command[] = {
	{"show", "WHAT ...", "what the daemon knows: `fpmctl help show` lists it", show_run,
	 OPT_JSON | OPT_FAMILY | OPT_TIMES, show_help},
	{"explain", "dst ADDRESS [port NAME] [WORDS]",
	 "what would become of a packet, stage by stage; nothing is sent", explain,
	 OPT_JSON, help_explain},
	{"trace", "[WORDS]", "what becomes of live packets, stage by stage (10 of them)",
	 trace, OPT_JSON, help_trace},
	{"capture", "-w FILE|- [WORDS]",
	 "live packets as pcapng, a dropped one with the reason in it", capture, OPT_FILE,
	 help_capture},
	{"config", "keys | check FILE | show | reload [FILE] [--dry-run]",
	 "look at a configuration, or change to it", config_run, OPT_JSON | OPT_DRY_RUN,
	 config_help},
	{"port", "add|set|del NAME [device D] [mtu N] [queues N] [cores N,N]",
	 "ports come and go while others forward", port_run, OPT_JSON, port_help},
	{"device", "list | bind DEVICE ... | unbind DEVICE ... [--force]",
	 "NICs: which driver has them; to vfio-pci, and back to the kernel", device_run,
	 OPT_JSON | OPT_FORCE, device_help},
	{"set", "policer CLASS [rate N] [burst N] ...",
	 "change a policer until the daemon ends", set_run, OPT_JSON, set_help},
	{"audit", "[--repair] [--vtysh COMMAND]",
	 "compare what zebra, the RIB and the FIB have", audit,
	 OPT_JSON | OPT_REPAIR | OPT_VTYSH, audit_help},
	{"doctor", "[CHECK ... | list] [--vtysh COMMAND]",
	 "what is wrong with the machine, what it costs, what mends it", doctor,
	 OPT_JSON | OPT_VTYSH, doctor_help},
	{"replay", "", "have zebra connect anew and say everything again", replay, OPT_JSON,
	 NULL},
	{"hold", "[SECONDS]", "keep all routes while FRR is restarted", hold_run, OPT_JSON,
	 help_hold},
	{"restart", "", "have another daemon take its place", restart_run, OPT_JSON,
	 help_restart},
	{"help", "[COMMAND]", "this list, or all there is to say of one", help, 0, NULL},
};
#define N_COMMAND (sizeof(command) / sizeof(command[0]))

static const struct command *
command_find(const char *name)
{
	for (unsigned int i = 0; name != NULL && i < N_COMMAND; i++)
		if (strcmp(name, command[i].name) == 0)
			return &command[i];
	return NULL;
}

int
usage(const char *name)
{
	const struct command *c = command_find(name);

	usage_print(stderr, c != NULL ? c->name : "COMMAND ...", c != NULL ? c->words : "");
	if (c != NULL)
		fprintf(stderr, "`fpmctl help %s` tells more\n", c->name);
	else
		fputs("`fpmctl help` lists commands and options\n", stderr);
	return CTL_USAGE;
}

int
unexpected(const char *word, const char *name)
{
	return unexpected_but(word, NULL, name);
}

int
unexpected_but(const char *word, const char *meant, const char *name)
{
	if (meant != NULL)
		fprintf(stderr, "fpmctl: unexpected word '%s'; did you mean %s?\n", word,
			meant);
	else
		fprintf(stderr, "fpmctl: unexpected word '%s'\n", word);
	return usage(name);
}

static int
help(const struct options *opt, int n, char **word)
{
	const struct command *c = n > 0 ? command_find(word[0]) : NULL;

	if (n > 0 && (c == NULL || n > 1))
		return unexpected(word[c == NULL ? 0 : 1], NULL);
	if (c != NULL) {
		usage_print(stdout, c->name, c->words);
		printf("  %s\n", c->text);
		if (c->more != NULL)
			c->more(stdout);
		return CTL_OK;
	}
	puts("usage: fpmctl [OPTIONS] COMMAND ...\n");
	for (unsigned int i = 0; i < N_COMMAND; i++)
		printf("  %s%*s%s\n            %s\n", command[i].name,
		       command[i].words[0] == '\0' ? 0 : 10 - (int)strlen(command[i].name),
		       "", command[i].words, command[i].text);
	puts("\n  -s, --socket SOCKET  the daemon's control socket; else $FPMCTL_SOCKET, "
	     "else\n"
	     "                       " CTL_SOCKET "\n"
	     "  -j, --json           one JSON array of rows, of audit one object; the keys "
	     "are\n"
	     "                       stable (openapi.yaml)\n"
	     "  -h, --help           this list; with a command what there is to say of it\n"
	     "      --version        of fpmctl itself\n"
	     "  NO_COLOR in the environment: no colours, which only a terminal gets;\n"
	     "  TERM that is missing, empty or dumb: no escape sequences\n\n"
	     "Exit codes: 0 done; 1 no daemon, connection lost, of audit: no zebra;\n"
	     "2 wrong words, or refused and nothing changed; 3 nothing found, or found to\n"
	     "differ (audit), would be dropped (explain), a check failed (doctor), a\n"
	     "driver did not take it (device), nobody to replay, hold or restart, a\n"
	     "change while a restart is under way.");
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

/*
 * The time of --watch and --rates. `next` (NULL: none), the word behind an option without one,
 * is no time: that belongs to the option only with '=' between.
 */
static int
take_seconds(const char *name, const char *text, const char *next, double *out)
{
	double seconds = 1;
	char *end;

	if (text != NULL &&
	    (!number_decimal(text, &seconds) || seconds < 0.1 || seconds > 86400))
		return number_refused(name, text, "a number of seconds from 0.1 to 86400");
	if (text == NULL && next != NULL && (strtod(next, &end), end != next) &&
	    strspn(end, "s") == strlen(end)) {
		fprintf(stderr,
			"fpmctl: the seconds of %s stand behind a '=', as in %s=5, not "
			"behind a blank\n",
			name, name);
		return CTL_USAGE;
	}
	if (*out != 0 && *out != seconds) {
		fprintf(stderr, "fpmctl: %s is given twice, as %g and %g: say one\n", name,
			*out, seconds);
		return CTL_USAGE;
	}
	*out = seconds;
	return CTL_OK;
}

/* The value of an option; the same one again is nothing new. */
static int
take_text(const char *name, const char *text, const char **out)
{
	if (text[0] == '\0') {
		fprintf(stderr, "fpmctl: %s needs a value\n", name);
		return CTL_USAGE;
	}
	if (*out != NULL && strcmp(*out, text) != 0) {
		fprintf(stderr, "fpmctl: %s is given twice, as '%s' and '%s': say one\n",
			name, *out, text);
		return CTL_USAGE;
	}
	*out = text;
	return CTL_OK;
}

static int
take_family(int family, int *out)
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

/* What may follow the words, on a line: for the completion (dist/fpmctl.bash). */
static int
complete(int n, char **word)
{
	bool one = n == 1; /* word so far */

	if (n == 0 || (one && strcmp(word[0], "help") == 0)) {
		for (unsigned int i = 0; i < N_COMMAND; i++)
			printf("%s ", command[i].name);
		puts("");
	} else if (strcmp(word[0], "show") == 0) {
		show_words(stdout, one ? NULL : word[1], word[n - 1]);
	} else if (one && strcmp(word[0], "config") == 0) {
		puts("keys check show reload");
	} else if (strcmp(word[0], "port") == 0) {
		puts(one ? "add set del" : "device mtu queues cores");
	} else if (strcmp(word[0], "device") == 0) {
		if (one)
			puts("list bind unbind");
		else if (strcmp(word[1], "list") != 0)
			device_words(stdout);
	} else if (strcmp(word[0], "set") == 0) {
		if (one)
			puts("policer");
		else
			set_words(stdout, n == 2);
	} else if (strcmp(word[0], "doctor") == 0) {
		doctor_words(stdout);
	} else if (strcmp(word[0], "explain") == 0) {
		words_list(stdout, WORDS_EXPLAIN, word[n - 1]);
	} else if (strcmp(word[0], "trace") == 0) {
		words_list(stdout, WORDS_TRACE, word[n - 1]);
	} else if (strcmp(word[0], "capture") == 0) {
		words_list(stdout, WORDS_CAPTURE, word[n - 1]);
	}
	return CTL_OK;
}

/* Options that were given and belong to another command. Returns CTL_OK or CTL_USAGE. */
static int
check_options(const struct command *c, unsigned int given)
{
	static const struct {
		unsigned int bit;
		const char *text;
	} of[] = {{OPT_REPAIR, "--repair belongs to audit"},
		  {OPT_VTYSH, "--vtysh belongs to audit and doctor"},
		  {OPT_FILE, "-w belongs to capture"},
		  {OPT_FAMILY, "-4 and -6 choose routes or neighbors"},
		  {OPT_DRY_RUN, "--dry-run belongs to config reload"},
		  {OPT_FORCE, "--force belongs to device bind"},
		  {OPT_TIMES, "--watch and --rates belong to show"},
		  {OPT_JSON, "--json belongs to what has rows: not to capture and help"}};

	for (unsigned int i = 0; i < sizeof(of) / sizeof(of[0]); i++)
		if ((given & of[i].bit & ~c->options) != 0) {
			fprintf(stderr, "fpmctl: %s\n", of[i].text);
			return usage(c->name);
		}
	return CTL_OK;
}

/*
 * What getopt stumbled over; `given` is the argument that it was in, or the one behind it.
 * Returns CTL_USAGE.
 */
static int
bad_option(int opt, const char *given)
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
			"fpmctl: -%c begins no option, and no number that fpmctl takes is "
			"below 0\n",
			optopt);
	else
		fprintf(stderr,
			"fpmctl: there is no option %s: words have no dashes, `fpmctl "
			"help` lists both\n",
			is_long ? given : one);
	return CTL_USAGE;
}

/*
 * What is asked travels as JSON: a word that cannot would be left out of it, and something else
 * be asked. Files may have any name.
 */
static int
check_utf8(const struct command *c, int n, char **word)
{
	for (int i = 0; i < n && c->run != config_run; i++) {
		json_t *json = json_string(word[i]);

		json_decref(json);
		if (json == NULL) {
			fprintf(stderr, "fpmctl: word %d behind %s is not UTF-8\n", i + 1,
				c->name);
			return CTL_USAGE;
		}
	}
	return CTL_OK;
}

/*
 * Take all options; what stands for itself is done here. Returns -1, or the exit code when that
 * was all.
 */
static int
take_options(struct options *o, unsigned int *given, int argc, char **argv)
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
	const char *names = NULL; /* of what the completion asks for */
	bool helping = false, completing = false;
	int opt, rc = CTL_OK;

	while (rc == CTL_OK &&
	       (opt = getopt_long(argc, argv, ":s:jhw:46", options, NULL)) != -1) {
		switch (opt) {
		case 's':
			rc = take_text("-s", optarg, &o->socket);
			break;
		case 'j':
			o->json = true;
			*given |= OPT_JSON;
			break;
		case 'h':
			helping = true;
			break;
		case 'v':
			puts("fpmctl " FPMDP_VERSION);
			return CTL_OK;
		case 'r':
			o->repair = true;
			*given |= OPT_REPAIR;
			break;
		case 'w':
			rc = take_text("-w", optarg, &o->file);
			*given |= OPT_FILE;
			break;
		case 'V':
			rc = take_text("--vtysh", optarg, &o->vtysh);
			*given |= OPT_VTYSH;
			break;
		case 'n':
			o->dry_run = true;
			*given |= OPT_DRY_RUN;
			break;
		case 'F':
			o->force = true;
			*given |= OPT_FORCE;
			break;
		case 'W':
			rc = take_seconds("--watch", optarg, argv[optind], &o->watch_s);
			*given |= OPT_TIMES;
			break;
		case 'R':
			rc = take_seconds("--rates", optarg, argv[optind], &o->rates_s);
			*given |= OPT_TIMES;
			break;
		case 'C':
			completing = true;
			names = optarg;
			break;
		case '4':
		case '6':
			rc = take_family(opt - '0', &o->family);
			*given |= OPT_FAMILY;
			break;
		default:
			return bad_option(opt, argv[optind - 1]);
		}
	}
	if (rc != CTL_OK)
		return rc;
	if (o->socket == NULL)
		o->socket = getenv("FPMCTL_SOCKET");
	if (o->socket == NULL || o->socket[0] == '\0')
		o->socket = CTL_SOCKET;
	if (helping) /* of the command that it stands with, if any */
		return help(o, optind < argc && command_find(argv[optind]) != NULL,
			    argv + optind);
	if (completing)
		return names != NULL ? show_names(o, names)
				     : complete(argc - optind, argv + optind);
	return -1;
}

int
main(int argc, char **argv)
{
	struct options o = {0};
	const struct command *c;
	const char *meant = NULL;
	unsigned int given = 0;
	int rc;

	stdio_secure();
	rc = take_options(&o, &given, argc, argv);
	if (rc >= 0)
		return flushed(rc, 0);
	if (optind == argc)
		return usage(NULL);
	c = command_find(argv[optind]);
	for (unsigned int i = 0; i < N_COMMAND && c == NULL && meant == NULL; i++)
		if (is_near(argv[optind], command[i].name))
			meant = command[i].name;
	if (c == NULL)
		return unexpected_but(argv[optind], meant, NULL);
	if (check_options(c, given) != CTL_OK ||
	    check_utf8(c, argc - optind - 1, argv + optind + 1) != CTL_OK)
		return CTL_USAGE;
	return flushed(c->run(&o, argc - optind - 1, argv + optind + 1), 0);
}
