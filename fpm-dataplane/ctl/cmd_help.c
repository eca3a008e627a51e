/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `fpmctl help`, and the list of commands, in which main.c and the completion find a
 * command by name.
 */
#include "ctl/cmd.h"

#include <stdio.h>
#include <string.h>

#include "ctl/text.h"

static const struct command *const command[] = {
	&cmd_show,    &cmd_explain, &cmd_trace, &cmd_capture, &cmd_config, &cmd_port,
	&cmd_device,  &cmd_set,     &cmd_audit, &cmd_doctor,  &cmd_replay, &cmd_hold,
	&cmd_restart, &cmd_hook,    &cmd_snmp,  &cmd_help,
};
#define N_COMMAND (sizeof(command) / sizeof(command[0]))

const struct command *
command_find(const char *name)
{
	for (unsigned int i = 0; name != NULL && i < N_COMMAND; i++)
		if (strcmp(name, command[i]->name) == 0)
			return command[i];
	return NULL;
}

const char *
command_nearest(const char *name)
{
	for (unsigned int i = 0; i < N_COMMAND; i++)
		if (word_is_near(name, command[i]->name))
			return command[i]->name;
	return NULL;
}

void
command_complete(FILE *out, int n, char **word)
{
	const struct command *c = n > 0 ? command_find(word[0]) : &cmd_help;

	if (c != NULL && c->complete != NULL)
		c->complete(out, n > 0 ? n - 1 : 0, word + 1);
}

static void
help_complete(FILE *out, int n, char **word)
{
	if (n > 0)
		return;
	for (unsigned int i = 0; i < N_COMMAND; i++)
		fprintf(out, "%s ", command[i]->name);
	fputc('\n', out);
}

static int
help_run(const struct options *opt, int n, char **word)
{
	const struct command *c = n > 0 ? command_find(word[0]) : NULL;

	if (n > 0 && (c == NULL || n > 1))
		return cli_unexpected(word[c == NULL ? 0 : 1], NULL);
	if (c != NULL) {
		usage_print(stdout, c->name, c->words);
		printf("  %s\n", c->text);
		if (c->help != NULL)
			c->help(stdout);
		return CTL_OK;
	}
	puts("usage: fpmctl [OPTIONS] COMMAND ...\n");
	for (unsigned int i = 0; i < N_COMMAND; i++)
		printf("  %s%*s%s\n            %s\n", command[i]->name,
		       command[i]->words[0] == '\0' ? 0
						    : 10 - (int)strlen(command[i]->name),
		       "", command[i]->words, command[i]->text);
	puts("\n"
	     "  -s, --socket SOCKET  the daemon's control socket; default $FPMCTL_SOCKET, "
	     "else\n"
	     "                       " CTL_SOCKET "\n"
	     "  -j, --json           print a JSON array of rows (audit: an object); keys "
	     "are\n"
	     "                       stable (openapi.yaml)\n"
	     "  -h, --help           print this list; with a command, its help\n"
	     "      --version        print the version of fpmctl\n"
	     "\n"
	     "Environment:\n"
	     "  FPMCTL_SOCKET  control socket of the daemon\n"
	     "  NO_COLOR       if it is not empty: no colors; only a terminal gets colors\n"
	     "  TERM           if it is missing, empty or dumb: no escape sequences\n"
	     "\n"
	     "Exit codes:\n"
	     "  0  done\n"
	     "  1  no daemon, connection lost, or output not written; audit: zebra does "
	     "not\n"
	     "     answer\n"
	     "  2  invalid arguments, or refused; nothing changed\n"
	     "  3  nothing found; trace: no packet; explain: the packet would be dropped;\n"
	     "     audit: a difference; doctor: a check failed; device: a driver refused "
	     "the\n"
	     "     device; replay, hold: no zebra; restart: no supervisor, or refused; "
	     "any\n"
	     "     change during a restart: try again afterwards");
	return CTL_OK;
}

const struct command cmd_help = {
	.name = "help",
	.words = "[COMMAND]",
	.text = "list commands, or describe one",
	.run = help_run,
	.complete = help_complete,
};
