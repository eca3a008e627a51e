/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options: the daemon's command line.
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>

struct options {
	const char *file; /* the configuration */
	bool check, prepare, poll_always;
};

/* False: that was all, or wrong, and has been said; end with *code.              [main] */
bool options_parse(int argc, char **argv, struct options *opt, int *code);

#endif
