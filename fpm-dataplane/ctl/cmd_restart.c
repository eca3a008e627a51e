/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `fpmctl restart`: have another daemon take the place of this one, and wait until it has, or
 * until this one says why not. It is asked again and again, on new connections: none outlives
 * the daemon that it was made to. One that is stopped meanwhile takes its socket's path away; all through
 * a restart it is there (ui/ui.h).
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "ctl/cmd.h"
#include "ctl/conn.h"

#define LOOK_MS   100
#define RESTART_S 240 /* restart/handover.h: prepare, rest, and devices that start */

/* Who answers, and what it has refused. */
struct seen {
	long long pid, refused;
	char why[256];
};

static bool
version_on_row(const json_t *row, const char *text, void *ctx)
{
	struct seen *s = ctx;

	s->pid = row_int(row, "pid");
	s->refused = row_int(row, "restarts_refused");
	snprintf(s->why, sizeof(s->why), "%s", row_str(row, "restart_refused"));
	return true;
}

static int
version_look(const char *socket, bool quiet, struct seen *s)
{
	json_t *request = json_pack("{s:s}", "show", "version");
	int rc = quiet ? conn_try(socket, request, version_on_row, s)
		       : conn_ask(socket, request, version_on_row, s);

	json_decref(request);
	return rc;
}

/* No daemon, nor one to come. */
static bool
daemon_is_gone(const char *socket, long long pid)
{
	struct stat st;

	return lstat(socket, &st) < 0 && errno == ENOENT && kill((pid_t)pid, 0) < 0 &&
	       errno == ESRCH;
}

/* Returns an exit code, when there is one to return. */
static int
successor_await(const struct options *opt, const struct seen *before)
{
	const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000};
	unsigned int gone = 0;
	struct seen now;

	/* A look may take its time as well: it is a daemon that is about to end. */
	for (uint64_t end = monotonic_ms() + RESTART_S * 1000; monotonic_ms() < end;) {
		nanosleep(&pause, NULL);
		if (version_look(opt->socket, true, &now) != CTL_OK) {
			/* Twice: the next one's path is put in the place of the last one's. */
			gone = daemon_is_gone(opt->socket, before->pid) ? gone + 1 : 0;
			if (gone < 2)
				continue;
			fputs("fpmctl: the daemon has been stopped meanwhile, no other "
			      "takes "
			      "its place\n",
			      stderr);
			return CTL_NO_DAEMON;
		}
		if (now.pid != before->pid) {
			if (opt->json)
				json_rows_end(0);
			else
				printf("Another daemon has taken its place, pid %lld.\n",
				       now.pid);
			return CTL_OK;
		}
		if (now.refused != before->refused) {
			fprintf(stderr,
				"fpmctl: restart refused, the daemon forwards on: %s\n",
				now.why);
			return CTL_FAILED;
		}
	}
	fprintf(stderr,
		"fpmctl: no other daemon has taken its place after %d s, nor does it say "
		"why: see its log\n",
		RESTART_S);
	return CTL_NO_DAEMON;
}

static int
restart_run(const struct options *opt, int n, char **word)
{
	struct seen before;
	int rc;

	if (n > 0)
		return cli_unexpected(word[0], &cmd_restart);
	rc = version_look(opt->socket, false, &before);
	if (rc != CTL_OK)
		return rc;
	rc = conn_fetch(opt->socket, json_pack("{s:s}", "do", "restart"), NULL);
	return rc == CTL_OK ? successor_await(opt, &before) : rc;
}

static void
restart_help(FILE *out)
{
	fputs("      after an upgrade, or for a new configuration; sessions stay, transit "
	      "rests\n      some milliseconds, or while NICs start. Under systemd or "
	      "fpm-supervise.\n"
	      "      Waits until it has happened; what could not start is refused, and "
	      "the\n"
	      "      daemon forwards on. Meanwhile nothing else can be changed\n",
	      out);
}

const struct command cmd_restart = {
	.name = "restart",
	.words = "",
	.text = "have another daemon take its place",
	.run = restart_run,
	.options = OPT_JSON,
	.help = restart_help,
};
