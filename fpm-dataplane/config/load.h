/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * load: the one YAML file, checked wholly before anything starts.                 [main]
 */
#ifndef CONFIG_LOAD_H
#define CONFIG_LOAD_H

#include <limits.h>
#include <stddef.h>
#include <stdio.h>

struct config;
struct config_port;

/*
 * Read and check `file`. Every error found is written to `err` as a line of its own,
 *   FILE:LINE:COLUMN: KEY: what is wrong; what was expected
 * among them unknown keys, wrong types, duplicate names, a network interface named in
 * `iface=` or a namespace that does not exist, a CPU that is not there, a TAP's name or a
 * socket's path that something else has. FILE is as config_file_str() has it.
 * Returns 0, or the number of errors (conf is then not to be used).
 */
int config_load(const char *file, struct config *conf, FILE *err);

/*
 * The same of `len` octets that were read already, from what messages call `file`; NULL: from
 * no file of anybody's, and messages name no places in it.
 */
int config_parse(const char *file, const void *octets, size_t len, struct config *conf,
		 FILE *err);

/* Fill a port with what its configuration need not say. */
void config_port_defaults(struct config_port *port);

/* A file's name in messages: one line of UTF-8, whatever octets the name has; returns buf. */
#define CONFIG_FILE_STRLEN (4 * PATH_MAX + 1)
const char *config_file_str(const char *file, char buf[CONFIG_FILE_STRLEN]);

#endif
