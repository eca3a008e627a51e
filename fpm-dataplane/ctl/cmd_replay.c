/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `fpmctl replay`: let the daemon close the FPM session. zebra then connects again and
 * replays all routes.
 */
#include <stdio.h>

#include "ctl/cmd.h"
#include "ctl/conn.h"

static int
replay_run(const struct options *opt, int n, char **word)
{
	int rc;

	if (n > 0)
		return cli_unexpected(word[0], &cmd_replay);
	rc = conn_fetch(opt->socket, json_pack("{s:s}", "do", "replay"), NULL);
	if (rc == CTL_OK && opt->json)
		json_rows_end(0);
	else if (rc == CTL_OK)
		puts("The FPM session is closed; zebra connects again within 3 s and "
		     "replays.\nForwarding goes on meanwhile. `fpmctl show fpm` shows the "
		     "progress.");
	return rc;
}

const struct command cmd_replay = {
	.name = "replay",
	.words = "",
	.text = "reset the FPM session so that zebra replays all routes",
	.run = replay_run,
	.options = OPT_JSON,
};
