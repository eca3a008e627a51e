/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libFuzzer target: any octets as a request on the control socket. The request is accepted,
 * or refused with one sentence that is safe for a terminal.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "must.h"
#include "ui/internal.h"

#define ROOM_BYTES 65536u /* a multiple of the size of a page */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * Return a copy of the request that ends where a page ends, behind which no page is. So an
 * over-read by jansson is found, too, which has no instrumentation. request_load() needs no
 * NUL behind the text.
 */
static const char *
request_put(const uint8_t *data, size_t size)
{
	static char *page;

	if (page == NULL) {
		page = mmap(NULL, 2 * ROOM_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		MUST(page != MAP_FAILED);
		MUST(mprotect(page + ROOM_BYTES, ROOM_BYTES, PROT_NONE) == 0);
	}
	memcpy(page + ROOM_BYTES - size, data, size);
	return page + ROOM_BYTES - size;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct request req;
	char why[256] = "";
	json_t *root;
	int rc;

	if (size > UI_REQUEST_MAX)
		return 0; /* client.c refuses longer requests */
	root = request_load(request_put(data, size), size);
	rc = request_parse(root, &req, why, sizeof(why));
	json_decref(root);
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
