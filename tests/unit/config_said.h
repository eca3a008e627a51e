/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config_said: load a text as configuration and compare the messages.
 */
#ifndef CONFIG_SAID_H
#define CONFIG_SAID_H

#include "config/config.h"
#include "config/load.h"
#include "config/print.h"

#define PORT "ports: [{tap: wan0, device: net_null}]\n"

extern struct config conf; /* result of the last load */
extern char said[65536];   /* messages of the last load without file name and columns */
extern char placed[65536]; /* the same with columns */

/* Load a text. Return the number of errors. */
int load(const char *text);
int load_octets(const char *text, size_t len);

/*
 * Assert that `text`, behind a good port on line 1, gives exactly these lines; "" for none.
 */
void says(const char *text, const char *lines);

/* Assert that `text` alone gives exactly these lines. */
void says_alone(const char *text, const char *lines);

#endif
