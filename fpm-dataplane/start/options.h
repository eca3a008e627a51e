/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options: the daemon's command line.
 */
#ifndef START_OPTIONS_H
#define START_OPTIONS_H

#include <stdbool.h>

#include "config/config.h"

struct options {
	const char *file; /* the configuration */
	bool check, prepare, poll_always;
	bool nics; /* be the process that keeps them: nicd/server.c */
};

/*
 * Read the configuration. Where it is refused and we are the next of a daemon (service.h), what
 * it names may be away for a moment only, or be half written: it is looked at for a second more.
 *                                                                                 [main]
 * False: that was all (--check), or wrong, and has been said; end with *code.
 */
bool options_load(const struct options *opt, struct config *conf, int *code);

/* False: that was all, or wrong, and has been said; end with *code.              [main] */
bool options_parse(int argc, char **argv, struct options *opt, int *code);

#endif
