/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api: translate an HTTP request to a request of the control protocol (dist/openapi.yaml).
 * [ui]
 */
#ifndef UI_API_H
#define UI_API_H

#include "ui/internal.h"

#define API_ARGS_MAX 16

struct api_arg {
	const char *key, *value; /* value NULL: the parameter has no value */
};

/* A request after percent-decoding. Its texts may be invalid UTF-8. */
struct api_input {
	const char *method, *path;
	struct api_arg arg[API_ARGS_MAX]; /* the query string */
	unsigned int n_arg;
	const char *body; /* not terminated */
	size_t n_body;
};

struct api_output {
	json_t *request; /* the caller owns it; NULL: refused */
	enum rows_form form;
	unsigned int status; /* of HTTP, when refused; 405: `allow` lists the methods */
	char allow[64];
	char why[256]; /* a sentence */
};

/* Translate a request or refuse it. [no side effects] */
void api_request(const struct api_input *in, struct api_output *out);

#endif
