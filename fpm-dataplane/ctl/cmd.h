/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cmd: the commands of fpmctl. The file of `fpmctl X` is ctl/cmd_X.c.
 */
#ifndef CTL_CMD_H
#define CTL_CMD_H

#include "ctl/cli.h"

extern const struct command cmd_show, cmd_explain, cmd_trace, cmd_capture, cmd_config,
	cmd_port, cmd_device, cmd_set, cmd_audit, cmd_doctor, cmd_replay, cmd_hold,
	cmd_restart, cmd_hook, cmd_snmp, cmd_help;

/*
 * cmd_help.c: find a command by name (NULL: none), or the command name nearest to a wrong
 * name.
 */
const struct command *command_find(const char *name);
const char *command_nearest(const char *name);

/* Print on a line, for the completion (dist/fpmctl.bash), the words that may follow. */
void command_complete(FILE *out, int n, char **word);

/*
 * cmd_show.c: print for the completion the names of the rows of `what`, or the `reasons`
 * of drops and punts. Asks the daemon. Returns an exit code.
 */
int show_names(const struct options *opt, const char *what);

#endif
