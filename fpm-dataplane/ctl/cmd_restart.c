/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `fpmctl restart`: ask the daemon for a handover to a successor, and wait until the
 * handover is complete or refused. Each query has a new connection, because a connection
 * ends with its daemon. A daemon that is stopped meanwhile removes the path of its socket;
 * a handover keeps the path (ui/ui.h).
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
#define RESTART_S 240 /* restart/handover.h: prepare, quiesce, and start of devices */

/* The process id of the daemon, and the restarts that it refused. */
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

/* Return true if the daemon has ended and has no successor. */
static bool
daemon_is_gone(const char *socket, long long pid)
{
	struct stat st;

	return lstat(socket, &st) < 0 && errno == ENOENT && kill((pid_t)pid, 0) < 0 &&
	       errno == ESRCH;
}

/* Wait for the successor. Returns an exit code. */
static int
successor_await(const struct options *opt, const struct seen *before)
{
	const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000};
	unsigned int gone = 0;
	struct seen now;

	/*
	 * Limit the time and not the rounds, because a query to a daemon that is about to
	 * end may take long.
	 */
	for (uint64_t end = monotonic_ms() + RESTART_S * 1000; monotonic_ms() < end;) {
		nanosleep(&pause, NULL);
		if (version_look(opt->socket, true, &now) != CTL_OK) {
			/*
			 * Require this twice in a row, because there is no path for a
			 * moment when the successor replaces the path of its predecessor.
			 */
			gone = daemon_is_gone(opt->socket, before->pid) ? gone + 1 : 0;
			if (gone < 2)
				continue;
			fputs("fpmctl: the daemon was stopped meanwhile, and has no "
			      "successor\n",
			      stderr);
			return CTL_NO_DAEMON;
		}
		if (now.pid != before->pid) {
			if (opt->json)
				json_rows_end(0);
			else
				printf("The successor has taken over, pid %lld.\n",
				       now.pid);
			return CTL_OK;
		}
		if (now.refused != before->refused) {
			fprintf(stderr,
				"fpmctl: restart refused, the daemon continues: %s\n",
				now.why);
			return CTL_FAILED;
		}
	}
	fprintf(stderr,
		"fpmctl: no successor has taken over after %d s, and the daemon gave no "
		"reason: see its log\n",
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
	fputs("      Use it after an upgrade or a change of the configuration file. "
	      "Sessions\n"
	      "      of BGP and OSPF stay up.\n"
	      "      Forwarding stops for some milliseconds, or until the NICs have "
	      "started.\n"
	      "      The command needs systemd or fpm-supervise. It waits until the "
	      "successor\n"
	      "      has taken over. If the successor cannot start, the restart is refused "
	      "and\n"
	      "      the daemon continues: exit code 3.\n"
	      "      During a restart, changes of ports, configuration, policers and "
	      "programs\n"
	      "      (hook) are refused with exit code 3, because the successor would not "
	      "have\n"
	      "      them. A reload by SIGHUP is done afterwards.\n",
	      out);
}

const struct command cmd_restart = {
	.name = "restart",
	.words = "",
	.text = "start a successor that takes over from the daemon",
	.run = restart_run,
	.options = OPT_JSON,
	.help = restart_help,
};
