/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Recorded streams of FRR, read into memory as a whole.
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
	struct capture *v; /* sorted by name */
	size_t n;          /* 0: there are no streams; a message was printed */
};

extern struct captures captures;

/* Set up and tear down a group of tests. */
int captures_open(void **state);
int captures_close(void **state);

/* Apply the decode of a capture to the model. */
void read_capture(struct model *m, const struct capture *c);

#endif
