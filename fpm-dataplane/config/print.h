/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * print: a configuration as YAML, the keys that a file may have, and the differences of two
 * configurations.
 */
#ifndef CONFIG_PRINT_H
#define CONFIG_PRINT_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>

struct config;

/* Every key but defaults that have no value, as a file that config_load() reads back. */
void config_show(const struct config *conf, FILE *out);

/* A key of the file, as `fpmctl config keys` tells it. Valid during the call that tells it. */
struct config_key {
	const char *path;     /* "fpm.listen", "ports[].mtu" */
	const char *value;    /* its default as YAML; NULL: has none */
	const char *expected; /* the values it takes, in words */
	bool required;
	bool live; /* a running daemon takes another value */
};

/* Tell all keys that a file may have. */
void config_keys(void (*tell)(void *ctx, const struct config_key *key), void *ctx);

/* One difference of two configurations. Valid during the call that tells it. */
struct config_change {
	const char *path; /* "fpm.listen", "ports[wan0].mtu"; "ports[wan0]": a whole port */
	const char *from, *to; /* as YAML; NULL: is not there */
	bool live;             /* a running daemon can take it */
};

/* Tell all that differs, ports by their names; returns how many there were. */
unsigned int config_diff(const struct config *from, const struct config *to,
			 void (*tell)(void *ctx, const struct config_change *change),
			 void *ctx);

/* "127.0.0.1:2620" or "[::1]:2620", as in the file; returns buf. */
#define CONFIG_LISTEN_STRLEN 64
const char *config_listen_str(const struct sockaddr_storage *addr,
			      char buf[CONFIG_LISTEN_STRLEN]);

#endif
