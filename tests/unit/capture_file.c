/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Recorded streams of FRR, see capture_file.h.
 */
#include "capture_file.h"

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

struct captures captures;

static void *
slurp(const char *path, size_t *len)
{
	FILE *f = fopen(path, "rb");
	char *p;
	long size;

	assert_non_null(f);
	assert_int_equal(fseek(f, 0, SEEK_END), 0);
	size = ftell(f);
	rewind(f);
	p = calloc(1, (size_t)size + 1);
	assert_non_null(p);
	*len = fread(p, 1, (size_t)size, f);
	assert_int_equal(*len, size);
	fclose(f);
	return p;
}

int
captures_open(void **state)
{
	const char *shared = getenv("SHARED");
	char path[512];
	glob_t found;
	size_t len;

	snprintf(path, sizeof(path), "%s/fpm-captures/*.bin",
		 shared != NULL ? shared : "../shared");
	if (glob(path, 0, NULL, &found) != 0) {
		print_message("skipped: no captures %s (not part of the project)\n", path);
		return 0;
	}
	captures.v = calloc(found.gl_pathc, sizeof(*captures.v));
	assert_non_null(captures.v);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		struct capture *c = &captures.v[captures.n++];

		snprintf(path, sizeof(path), "%s", found.gl_pathv[i]);
		c->bin = slurp(path, &c->len);
		*strrchr(path, '.') = '\0';
		snprintf(c->name, sizeof(c->name), "%s", strrchr(path, '/') + 1);
		strcat(path, ".txt");
		c->text = slurp(path, &len);
	}
	globfree(&found);
	return 0;
}

int
captures_close(void **state)
{
	for (size_t i = 0; i < captures.n; i++) {
		free(captures.v[i].bin);
		free(captures.v[i].text);
	}
	free(captures.v);
	return 0;
}

void
read_capture(struct model *m, const struct capture *c)
{
	char *copy = strdup(c->text);

	assert_non_null(copy);
	model_read(m, copy);
	free(copy);
}
