/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `fpmctl hold`: hold the routes before FRR is stopped. The systemd unit of FRR calls this
 * command once and does not check the result. So the command waits for a daemon that does
 * not run for a moment after a crash or during a handover. The checkpoint of the daemon has
 * zebra's port id and routes.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "ctl/cmd.h"
#include "ctl/conn.h"

#define HOLD_MAX_S 3600 /* as in dist/openapi.yaml and FPM_HOLD_MAX_S */
#define AWAY_S     30   /* a NIC may take 20 s to start */

/*
 * Return true if the path of the socket exists and no process listens. A daemon that was
 * stopped removes the path.
 */
static bool
daemon_is_away(const char *socket)
{
	struct stat st;

	return lstat(socket, &st) == 0 && S_ISSOCK(st.st_mode) && !conn_is_there(socket) &&
	       errno == ECONNREFUSED;
}

static void
daemon_await(const char *socket, uint64_t end_ms)
{
	const struct timespec pause = {.tv_nsec = 100000000};
	bool told = false;

	while (daemon_is_away(socket) && monotonic_ms() < end_ms) {
		if (!told)
			fprintf(stderr,
				"fpmctl: no daemon listens on %s; waiting for it, at most "
				"%d s\n",
				socket, AWAY_S);
		told = true;
		nanosleep(&pause, NULL);
	}
}

/* Send the request. Repeat it if the daemon ends meanwhile. */
static int
hold_ask(const char *socket, json_t *request)
{
	uint64_t end_ms = monotonic_ms() + AWAY_S * 1000u;
	int rc;

	do {
		daemon_await(socket, end_ms);
		rc = conn_ask(socket, request, NULL, NULL);
	} while (rc == CTL_NO_DAEMON && monotonic_ms() < end_ms && daemon_is_away(socket));
	return rc;
}

static bool
hold_on_state(const json_t *row, const char *text, void *held)
{
	*(bool *)held |= strcmp(row_str(row, "state"), "held") == 0;
	return true;
}

static int
hold_run(const struct options *opt, int n, char **word)
{
	bool held = n == 0; /* for `hold 0`: a hold was in force */
	long long seconds = 1;
	json_t *request;
	int rc;

	if (n > 1)
		return cli_unexpected(word[1], &cmd_hold);
	if (n > 0 && (!number_whole(word[0], &seconds) || seconds > HOLD_MAX_S))
		return number_refused("hold", word[0],
				      "a whole number of seconds from 0 to 3600");
	if (n > 0 && seconds == 0) {
		request = json_pack("{s:s}", "show", "fpm");
		rc = conn_ask(opt->socket, request, hold_on_state, &held);
		json_decref(request);
		if (rc != CTL_OK)
			return rc;
	}
	request = json_pack("{s:s}", "do", "hold");
	if (n > 0)
		json_object_set_new(request, "seconds", json_integer(seconds));
	rc = hold_ask(opt->socket, request);
	json_decref(request);
	if (rc == CTL_OK && opt->json)
		json_rows_end(0);
	else if (rc == CTL_OK)
		puts(n == 1 && seconds == 0
			     ? held ? "The hold is over: zebra connects within 3 s."
				    : "There was no hold: nothing has changed."
			     : "The routes of zebra stay in force until another zebra has "
			       "connected and\nsent its routes. Restart FRR now.");
	return rc;
}

static void
hold_help(FILE *out)
{
	fputs("      Run it before you stop FRR. FRR ends its other daemons before zebra, "
	      "and\n"
	      "      zebra then withdraws their routes. hold ends the session with this "
	      "zebra,\n"
	      "      so that the daemon keeps all routes. The daemon refuses this zebra "
	      "for\n"
	      "      SECONDS (0 to 3600, default 120; 0 ends the hold). The hold ends "
	      "when\n"
	      "      another zebra connects. A restart of the daemon does not end it.\n"
	      "      The command waits until the hold is in the checkpoint. It waits up to "
	      "30 s\n"
	      "      for a daemon that is being started. Exit code 3: no zebra is known "
	      "whose\n"
	      "      routes could be kept. The unit fpm-dataplane-hold runs the command\n"
	      "      whenever systemd restarts or stops frr.\n",
	      out);
}

const struct command cmd_hold = {
	.name = "hold",
	.words = "[SECONDS]",
	.text = "keep all routes while FRR is restarted",
	.run = hold_run,
	.options = OPT_JSON,
	.help = hold_help,
};
