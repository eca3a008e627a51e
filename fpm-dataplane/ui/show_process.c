/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answers about the process itself: its threads as the kernel sees them, the last lines of
 * the log. Runs in ui.
 */
#include "ui/internal.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

/* Field 39 of proc(5)'s stat, counted from the state, which follows the name. */
#define FIELD_UTIME 11
#define FIELD_STIME 12
#define FIELD_CPU   36

/* A row of one thread; NULL when it has ended. */
static json_t *
thread_row(const char *tid)
{
	char path[64], text[1024], *at, *name;
	double tick = (double)sysconf(_SC_CLK_TCK);
	unsigned long long utime = 0, stime = 0, cpu = 0;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%.16s/stat", tid);
	f = fopen(path, "re");
	if (f == NULL)
		return NULL;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	name = strchr(text, '(');
	at = strrchr(text, ')'); /* a name may hold anything */
	if (name == NULL || at == NULL)
		return NULL;
	*at = '\0';
	at += 2;
	for (unsigned int i = 0; i <= FIELD_CPU && at != NULL; i++) {
		if (i == FIELD_UTIME)
			utime = strtoull(at, NULL, 10);
		else if (i == FIELD_STIME)
			stime = strtoull(at, NULL, 10);
		else if (i == FIELD_CPU)
			cpu = strtoull(at, NULL, 10);
		at = strchr(at, ' ');
		at = at != NULL ? at + 1 : NULL;
	}
	return json_pack("{s:s, s:I, s:I, s:f}", "thread", name + 1, "tid",
			 (json_int_t)atoll(tid), "cpu", (json_int_t)cpu, "cpu_s",
			 (double)(utime + stime) / tick);
}

void
show_threads(struct rows *out)
{
	DIR *dir = opendir("/proc/self/task");

	for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
		json_t *row = e->d_name[0] == '.' ? NULL : thread_row(e->d_name);

		if (row != NULL)
			rows_put(out, row);
	}
	if (dir != NULL)
		closedir(dir);
}

static void
on_line(void *out, const char *line, size_t len)
{
	json_t *text = json_stringn(line, len);

	if (text != NULL) /* else no UTF-8: cut within a character */
		rows_put(out, json_pack("{s:o}", "line", text));
}

void
show_log(struct rows *out)
{
	log_recent(on_line, out);
}
