/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The value of a key "config" of a request: what the manage thread is to do. Runs in ui; no
 * state. As request.c: what is not known is refused with a sentence.
 */
#include "ui/internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int
bad(char *why, size_t why_size, const char *text)
{
	snprintf(why, why_size, "%s", text);
	return -EINVAL;
}

int
change_parse(const json_t *value, struct request *req, char *why, size_t why_size)
{
	const char *what = NULL, *file = NULL;
	int dry_run = 0;
	size_t n_known;
	json_error_t error;

	if (json_unpack_ex((json_t *)(uintptr_t)value, &error, 0, "{s:s, s?s, s?b}", "do",
			   &what, "file", &file, "dry_run", &dry_run) < 0)
		return bad(why, why_size,
			   "config takes an object: do (show, reload), file, dry_run");
	n_known = 1 + (file != NULL) + (json_object_get(value, "dry_run") != NULL);
	if (json_object_size(value) != n_known)
		return bad(why, why_size,
			   "unknown key in config; known are do, file, dry_run");
	if (strcmp(what, "show") == 0 && n_known == 1)
		req->change.op = MANAGE_SHOW;
	else if (strcmp(what, "reload") == 0)
		req->change.op = MANAGE_RELOAD;
	else
		return bad(why, why_size, "config can `show`, or `reload` a file");
	req->change.dry_run = dry_run != 0;
	if (file != NULL && (file[0] != '/' || strlen(file) >= sizeof(req->change.file)))
		return bad(why, why_size, "file is no absolute path of at most 255 octets");
	if (file != NULL)
		strcpy(req->change.file, file);
	return 0;
}
