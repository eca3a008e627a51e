/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Search the log, for tests of log lines that the manual documents. Lines below the log
 * level are not found.
 */
#ifndef LOG_SAID_H
#define LOG_SAID_H

#include <stdbool.h>
#include <string.h>

#include "base/log.h"

struct log_look {
	const char *words;
	unsigned int n;
};

static inline void
log_look_at(void *ctx, const char *line, size_t len)
{
	struct log_look *look = ctx;

	look->n += memmem(line, len, look->words, strlen(look->words)) != NULL;
}

/* Return the number of recent lines that contain these words. */
static inline unsigned int
log_said(const char *words)
{
	struct log_look look = {.words = words};

	log_recent(log_look_at, &look);
	return look.n;
}

#endif
