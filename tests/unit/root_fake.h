/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A folder that stands for / in a test program. It has the files of /sys, /proc and /dev
 * that the test puts there. Include cmocka.h before.
 */
#ifndef ROOT_FAKE_H
#define ROOT_FAKE_H

#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];

static inline int
root_make(void)
{
	strcpy(root, "/tmp/fpmdp_root.XXXXXX");
	return mkdtemp(root) == NULL ? -1 : 0;
}

static int
root_remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

static inline int
root_remove(void)
{
	return nftw(root, root_remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

/* Return the path below the folder. It is valid until the next call. */
static inline const char *
root_path(const char *path)
{
	static char full[PATH_MAX];

	snprintf(full, sizeof(full), "%s%s", root, path);
	return full;
}

/* Return the path, and make the folders above it. */
static inline const char *
root_path_made(const char *path)
{
	char folder[PATH_MAX];

	strcpy(folder, root_path(path));
	for (char *p = strchr(folder + strlen(root) + 1, '/'); p != NULL;
	     p = strchr(p + 1, '/')) {
		*p = '\0';
		mkdir(folder, 0755);
		*p = '/';
	}
	return root_path(path);
}

static inline void
root_put_octets(const char *path, const void *octets, size_t len)
{
	FILE *f = fopen(root_path_made(path), "we");

	assert_non_null(f);
	assert_int_equal(fwrite(octets, 1, len, f), len);
	fclose(f);
}

static inline void
root_put(const char *path, const char *text)
{
	root_put_octets(path, text, strlen(text));
}

/* Make a link, and replace an existing one. */
static inline void
root_put_link(const char *path, const char *to)
{
	const char *full = root_path_made(path);

	unlink(full);
	assert_int_equal(symlink(to, full), 0);
}

#endif
