/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `fpmctl replay`: let the daemon read all routes again. The daemon closes the FPM session,
 * so that zebra connects again and replays, and it dumps the kernel's tables.
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
		puts("All routes are read again: those of the kernel now, those of zebra "
		     "when it\nconnects again, within 3 s. Forwarding goes on meanwhile. "
		     "`fpmctl show fpm`\nand `fpmctl show kernel` show the progress.");
	return rc;
}

const struct command cmd_replay = {
	.name = "replay",
	.words = "",
	.text = "read all routes again, from zebra and from the kernel",
	.run = replay_run,
	.options = OPT_JSON,
};
