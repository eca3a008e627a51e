/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * load: read the YAML file, and check all of it before anything starts. Called by main
 * before any thread exists, by manage, and by fpmctl.
 */
#ifndef CONFIG_LOAD_H
#define CONFIG_LOAD_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct config;
struct config_port;

/*
 * Read and check `file`. Write a line to `err` for each error:
 *
 *   FILE:LINE:COLUMN: KEY: error; expected value
 *
 * FILE is in the form of config_file_str(). Errors are for example unknown keys, wrong
 * types, duplicate names, an interface in `iface=` or a namespace that does not exist, a
 * CPU that this process may not use, and a TAP name or a socket path that is already in
 * use. Return 0, or the number of errors; do not use `conf` then.
 */
int config_load(const char *file, struct config *conf, FILE *err);

/*
 * Read and check `len` octets that are in memory. Messages name `file` as the source; NULL:
 * messages have no file and no place before the key.
 */
int config_parse(const char *file, const void *octets, size_t len, struct config *conf,
		 FILE *err);

/*
 * Set the function by which later checks ask whether the daemon has the TAP of port `tap`.
 * Such a TAP may have been renamed, and another interface may have its old name. NULL, the
 * initial value: the daemon has no TAP.
 */
void config_taps_held(bool (*is_held)(const char *tap));

/* Fill a port with the defaults of its optional keys. */
void config_port_defaults(struct config_port *port);

/*
 * Write the name of a file for messages to `buf`: one line of UTF-8, whatever octets the
 * name has. Return buf.
 */
#define CONFIG_FILE_STRLEN (4 * PATH_MAX + 1)
const char *config_file_str(const char *file, char buf[CONFIG_FILE_STRLEN]);

#endif
