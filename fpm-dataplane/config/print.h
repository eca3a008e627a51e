/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * print: print a configuration as YAML, list the keys that a file may have, and compare two
 * configurations.
 */
#ifndef CONFIG_PRINT_H
#define CONFIG_PRINT_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>

struct config;

/*
 * Print the configuration as a file that config_load() reads back. It has every key except
 * unset ones whose default has no value.
 */
void config_show(const struct config *conf, FILE *out);

/* A key of the file, as `fpmctl config keys` prints it. Valid during the callback. */
struct config_key {
	const char *path;     /* "fpm.listen", "ports[].mtu" */
	const char *value;    /* its default as YAML; NULL: none */
	const char *expected; /* the permitted values, in words */
	bool required;
	bool live; /* a reload applies a new value */
};

/* Call on_key() for each key that a file may have. */
void config_keys(void (*on_key)(void *ctx, const struct config_key *key), void *ctx);

/* A difference of two configurations. Valid during the callback. */
struct config_change {
	const char *path; /* "fpm.listen", "ports[wan0].mtu"; "ports[wan0]": a whole port */
	const char *from, *to; /* as YAML; NULL: absent */
	bool live;             /* a reload applies it */
};

/*
 * Call on_change() for each difference; ports are matched by TAP name. Return the number of
 * differences.
 */
unsigned int config_diff(const struct config *from, const struct config *to,
			 void (*on_change)(void *ctx, const struct config_change *change),
			 void *ctx);

/* Write "127.0.0.1:2620" or "[::1]:2620", the form of the file, to `buf`. Return buf. */
#define CONFIG_LISTEN_STRLEN 64
const char *config_listen_str(const struct sockaddr_storage *addr,
			      char buf[CONFIG_LISTEN_STRLEN]);

#endif
