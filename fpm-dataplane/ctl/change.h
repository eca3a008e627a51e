/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * change: request a change of the running daemon (config, port), and print the
 * differences.
 */
#ifndef CTL_CHANGE_H
#define CTL_CHANGE_H

#include <jansson.h>

#include "ctl/cli.h"

/* The note of a command that changed the daemon but not its file. */
#define CHANGE_LASTS                                                                       \
	"This lasts until the daemon ends. Every start, also after a crash, follows the\n" \
	"configuration file: add the change there to keep it."

/*
 * Request a change. Prints the differences, and that they were applied, then `lasts` (NULL:
 * nothing). After a refusal, whose reason is then on stderr, it prints the requested
 * differences. `file` (NULL: none) is a file that the daemon must read. Steals `request`.
 * Returns an exit code.
 */
int change_ask(const struct options *opt, json_t *request, const char *file,
	       const char *lasts);

#endif
