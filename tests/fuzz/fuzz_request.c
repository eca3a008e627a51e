/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libFuzzer target: any octets as a request on the control socket. The request is accepted,
 * or refused with one sentence that is safe for a terminal.
 */
#include <errno.h>
#include <string.h>

#include "must.h"
#include "ui/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct request req;
	char why[256] = "", *line = malloc(size + 1);
	json_t *root;
	int rc;

	MUST(line != NULL);
	/*
	 * Copy the request to a block of its own, so that the sanitizer finds an over-read.
	 */
	memcpy(line, data, size);
	root = request_load(line, size);
	rc = request_parse(root, &req, why, sizeof(why));
	json_decref(root);
	free(line);
	MUST(rc == 0 || rc == -EINVAL || rc == -ENOENT);
	MUST((rc == 0) == (why[0] == '\0'));
	for (const char *p = why; *p; p++)
		MUST((uint8_t)*p >= ' ' && *p != 0x7f);
	if (rc < 0)
		return 0;
	MUST(req.show < N_SHOW);
	MUST(!req.has_prefix || req.prefix.len <= (req.family == 4 ? 32 : 128));
	MUST(memchr(req.port, '\0', sizeof(req.port)) != NULL);
	return 0;
}
