/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The captured streams beside the repository, all of them in memory.
 */
#ifndef CAPTURE_FILE_H
#define CAPTURE_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "capture_model.h"

struct capture {
	char name[96]; /* "frr8.4.4-07-ecmp4" */
	uint8_t *bin;
	size_t len;
	char *text;
};

struct captures {
	struct capture *v; /* by name */
	size_t n;          /* 0: there are none, which was said */
};

extern struct captures captures;

/* Set-up and tear-down of a group of tests. */
int captures_open(void **state);
int captures_close(void **state);

/* Its decode, into the model. */
void read_capture(struct model *m, const struct capture *c);

#endif
