/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cmd: the commands of fpmctl. The file of `fpmctl X` is ctl/cmd_X.c.
 */
#ifndef CTL_CMD_H
#define CTL_CMD_H

#include "ctl/cli.h"

extern const struct command cmd_show, cmd_explain, cmd_trace, cmd_capture, cmd_config,
	cmd_port, cmd_device, cmd_set, cmd_audit, cmd_doctor, cmd_replay, cmd_hold,
	cmd_restart, cmd_help;

/* cmd_help.c: the command of that name (NULL: none), and which one somebody may have meant. */
const struct command *command_find(const char *name);
const char *command_nearest(const char *name);

/* For the completion (dist/fpmctl.bash): what may follow these words, on a line. */
void command_complete(FILE *out, int n, char **word);

/*
 * cmd_show.c: the same of the daemon: names of the rows of `what`, or `reasons` for which packets
 * leave. Returns an exit code.
 */
int show_names(const struct options *opt, const char *what);

#endif
