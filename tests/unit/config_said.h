/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config_said: a configuration as text in, the exact words about it out.
 */
#ifndef CONFIG_SAID_H
#define CONFIG_SAID_H

#include "config/config.h"
#include "config/load.h"
#include "config/print.h"

#define PORT "ports: [{tap: wan0, device: net_null}]\n"

extern struct config conf; /* of the last load */
extern char said[65536];   /* what it wrote, without file name and columns */
extern char placed[65536]; /* with the columns */

/* Load a text; return the number of errors. */
int load(const char *text);
int load_octets(const char *text, size_t len);

/* `text` after a good port on line 1 yields exactly these lines, "" for none. */
void says(const char *text, const char *lines);

/* `text` alone yields exactly these lines. */
void says_alone(const char *text, const char *lines);

#endif
