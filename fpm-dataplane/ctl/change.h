/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * change: ask for a change of what runs (config, port), and tell what differs.
 */
#ifndef CTL_CHANGE_H
#define CTL_CHANGE_H

#include <jansson.h>

#include "ctl/cli.h"

/*
 * Ask for a change and tell what differs, and that it was done; or, of a change that was
 * refused (in words on stderr by now), that it was asked for. `file` (NULL: none) is one that
 * the daemon is to read. Steals `request`. Returns an exit code.
 */
int change_ask(const struct options *opt, json_t *request, const char *file);

#endif
