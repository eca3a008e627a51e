/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options: the daemon's command line.
 */
#ifndef START_OPTIONS_H
#define START_OPTIONS_H

#include <stdbool.h>

#include "config/config.h"

struct options {
	const char *file; /* the configuration file */
	bool check, prepare, poll_always;
	bool nics; /* run as fpm-nics: nicd/server.c */
};

/*
 * Read the configuration. If it has errors and the service manager keeps descriptors for
 * this daemon (sd_is_restarted()), retry for a second, because the file may be half written
 * or name an object that is absent for a moment. Return true to start the daemon. Return
 * false if --check has finished or there were errors, which are printed; then end with
 * *code. [main]
 */
bool options_load(const struct options *opt, struct config *conf, int *code);

/*
 * Parse the command line. Return false if nothing is left to do or the command line is
 * wrong; the answer is printed, and *code is the exit code. [main]
 */
bool options_parse(int argc, char **argv, struct options *opt, int *code);

#endif
