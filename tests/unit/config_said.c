/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Load texts as configuration files and compare the messages word by word.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config_said.h"

struct config conf;
char said[65536], placed[65536];

/* Return the number that the next descriptor gets. */
static int
descriptor_next(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	close(fd);
	return fd;
}

int
load_octets(const char *text, size_t len)
{
	char file[] = "/tmp/test_config.XXXXXX";
	int fd = mkstemp(file), next, n;
	char *err = NULL, *out = said, *at = placed;
	size_t size;
	FILE *f = open_memstream(&err, &size);

	assert_int_equal(write(fd, text, len), len);
	close(fd);
	next = descriptor_next();
	n = config_load(file, &conf, f);
	assert_int_equal(descriptor_next(), next); /* the file is closed */
	unlink(file);
	fclose(f);
	said[0] = placed[0] = '\0';
	for (char *line = strtok(err, "\n"); line != NULL; line = strtok(NULL, "\n")) {
		int lno, column, head = 0;

		assert_int_equal(strncmp(line, file, strlen(file)), 0);
		line += strlen(file) + 1;
		at += snprintf(at, sizeof(placed) - (size_t)(at - placed), "%s\n", line);
		if (sscanf(line, "%d:%d:%n", &lno, &column, &head) < 2 || head == 0)
			out += snprintf(out, sizeof(said) - (size_t)(out - said), "%s\n",
					line);
		else
			out += snprintf(out, sizeof(said) - (size_t)(out - said), "%d:%s\n",
					lno, line + head);
	}
	free(err);
	return n;
}

int
load(const char *text)
{
	return load_octets(text, strlen(text));
}

void
says(const char *text, const char *lines)
{
	char all[4096];
	int n = 0;

	snprintf(all, sizeof(all), "%s%s", PORT, text);
	n = load(all);
	assert_string_equal(said, lines);
	for (const char *p = lines; (p = strchr(p, '\n')) != NULL; p++)
		n--;
	assert_int_equal(n, 0); /* one error per line */
}

void
says_alone(const char *text, const char *lines)
{
	assert_true(load(text) > 0);
	assert_string_equal(said, lines);
}
