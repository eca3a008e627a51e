/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hooks: load a program of `fpmctl hook` for each row of the benchmark that has one. The
 * programs are the examples, which `make bench-tags` compiles beside this program. No
 * program matches a frame of the benchmark, except the sampling counter.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/bpf_object.h"
#include "fib/hook_list.h"
#include "hook/hook.h"
#include "tags.h"

#define N_HOOK 16

static struct {
	const struct row *row;
	struct fib_hooks list;
} of[N_HOOK];
static unsigned int n_of;

/* Read the object of an example. Returns its octets, or 0. */
static size_t
object_read(const char *name, uint8_t *out)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	FILE *file;
	size_t got = 0;

	if (n < 0)
		return 0;
	path[n] = '\0';
	*strrchr(path, '/') = '\0';
	snprintf(path + strlen(path), sizeof(path) - strlen(path), "/hooks/%s.o", name);
	file = fopen(path, "rb");
	if (file == NULL)
		return 0;
	got = fread(out, 1, BPF_OBJECT_MAX, file);
	fclose(file);
	return got;
}

static struct fib_hook *
hook_load(const char *name)
{
	uint8_t *octets = calloc(1, BPF_OBJECT_MAX);
	struct bpf_object object;
	struct fib_hook *hook = NULL;
	char why[256] = "there is no such object: make bench-tags";
	size_t n = octets == NULL ? 0 : object_read(name, octets);

	if (n > 0 && bpf_object_find(octets, n, &object, why, sizeof(why)) == 0)
		hook = hook_program_new(object.ins, (unsigned int)object.n, why,
					sizeof(why));
	if (hook == NULL)
		fprintf(stderr, "bench_tags: hook %s: %s\n", name, why);
	free(octets);
	return hook;
}

int
hooks_make(const char *dev)
{
	for (unsigned int r = 0; r < n_rows && n_of < N_HOOK; r++) {
		struct fib_hook *hook;

		if (rows[r].hook == NULL || !row_is_asked(&rows[r]))
			continue;
		hook = hook_load(rows[r].hook);
		if (hook == NULL)
			return -1;
		snprintf(hook->dev, sizeof(hook->dev), "%s",
			 rows[r].hook_elsewhere ? "elsewhere" : dev);
		of[n_of].row = &rows[r];
		of[n_of].list.n = 1;
		of[n_of++].list.hook[0] = hook;
	}
	return 0;
}

void
hooks_turn(struct fib *fib, const struct row *row)
{
	fib->hooks = NULL;
	for (unsigned int i = 0; row->hook != NULL && i < n_of; i++)
		if (of[i].row == row)
			fib->hooks = &of[i].list;
}
