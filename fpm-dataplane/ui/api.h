/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api: a request of HTTP in the words of the control protocol (dist/openapi.yaml).  [ui]
 */
#ifndef UI_API_H
#define UI_API_H

#include "ui/internal.h"

#define API_ARGS_MAX 16

struct api_arg {
	const char *key, *value; /* value NULL: there was none */
};

/* What came in, without percent-encoding; nothing of it is UTF-8 for sure. */
struct api_input {
	const char *method, *path;
	struct api_arg arg[API_ARGS_MAX]; /* behind the question mark */
	unsigned int n_arg;
	const char *body; /* not terminated */
	size_t n_body;
};

struct api_output {
	json_t *request; /* the caller's; NULL: refused */
	enum rows_form form;
	unsigned int status; /* of HTTP, when refused; 405: `allow` tells what is */
	char allow[64];
	char why[256]; /* a sentence */
};

/* Nothing but that: whatever came, it is asked for or refused.        [no side effects] */
void api_request(const struct api_input *in, struct api_output *out);

#endif
