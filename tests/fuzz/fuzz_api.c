/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libFuzzer target: any octets as a request of the HTTP API, as libmicrohttpd hands it on.
 * The first lines are method, path and parameters (key=value), an empty line ends them, the
 * rest is the body. The API translates the request to a request of the control protocol, or
 * refuses it with a status. The parser of the control protocol accepts or refuses the
 * translation. Each refusal has one sentence that is safe for a terminal.
 */
#include <string.h>

#include "must.h"
#include "ui/api.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
is_a_sentence(const char *why)
{
	MUST(why[0] != '\0');
	for (const char *p = why; *p; p++)
		MUST((uint8_t)*p >= ' ' && *p != 0x7f);
}

/* Return the next line; NULL at the end or if the line is empty. */
static char *
line_of(char **at)
{
	char *line = *at, *end = line != NULL ? strchr(line, '\n') : NULL;

	*at = end != NULL ? end + 1 : NULL;
	if (end != NULL)
		*end = '\0';
	return line == NULL || line[0] == '\0' ? NULL : line;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *at = text, *line, *value, why[256] = "";
	struct api_input in;
	struct api_output out;
	struct request req;
	int rc;

	MUST(text != NULL);
	memcpy(text, data, size);
	text[size] = '\0';
	in = (struct api_input){.method = line_of(&at), .path = line_of(&at)};
	if (in.method == NULL)
		in.path = NULL; /* a request without a method is not passed on */
	while (in.path != NULL && in.n_arg < API_ARGS_MAX &&
	       (line = line_of(&at)) != NULL) {
		value = strchr(line, '=');
		if (value != NULL)
			*value++ = '\0';
		in.arg[in.n_arg++] = (struct api_arg){.key = line, .value = value};
	}
	in.body = at;
	in.n_body = at != NULL ? strlen(at) : 0;
	if (in.path != NULL) {
		api_request(&in, &out);
		MUST((out.request == NULL) == (out.status != 0));
		MUST(out.status == 0 || (out.status >= 400 && out.status < 500));
		if (out.request == NULL) {
			is_a_sentence(out.why);
		} else {
			rc = request_parse(out.request, &req, why, sizeof(why));
			MUST((rc == 0) == (why[0] == '\0'));
			if (rc < 0)
				is_a_sentence(why);
		}
		json_decref(out.request);
	}
	free(text);
	return 0;
}
