/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `fpmctl hook`: load and unload programs of interfaces. This program reads the file with
 * the rights of the user, because the daemon's systemd unit hides most files from the
 * daemon. The daemon gets the instructions in one or more requests.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/hook_conf.h"
#include "base/inet.h"
#include "base/log.h"
#include "ctl/bpf_object.h"
#include "ctl/cmd.h"
#include "ctl/conn.h"
#include "ctl/json_row.h"
#include "ctl/text.h"

static void
hook_help(FILE *out)
{
	fputs("      load FILE dev NAME  run the program in FILE, an object file for the\n"
	      "                          target bpf, on each IP packet that NAME receives\n"
	      "      unload dev NAME     remove the program of NAME\n"
	      "      Only root may do this. The daemon verifies the program before it "
	      "runs. If\n"
	      "      the daemon refuses the program, NAME keeps its previous program.\n"
	      "      `fpmctl show hooks` lists the programs. A program runs until the "
	      "daemon\n"
	      "      ends. The page Programs of the manual describes how to write and "
	      "compile\n"
	      "      a program.\n"
	      "      Example:\n"
	      "      fpmctl hook load drop_payload.o dev lan0\n",
	      out);
}

static int
file_refused(const char *file, const char *why)
{
	char shown[256];

	fprintf(stderr, "fpmctl: %s: %s\n", log_escape_name(file, shown, sizeof(shown)),
		why);
	return CTL_USAGE;
}

/*
 * Read a whole file, of at most BPF_OBJECT_MAX octets, into memory that the caller frees.
 * Returns CTL_OK, or another exit code after printing an error.
 */
static int
file_read(const char *file, uint8_t **data, size_t *size)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	ssize_t n = 0;

	*data = NULL;
	*size = 0;
	if (fd < 0)
		return file_refused(file, strerror(errno));
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return file_refused(file, "is no regular file");
	}
	*data = malloc(BPF_OBJECT_MAX + 1);
	if (*data == NULL)
		abort();
	while (*size <= BPF_OBJECT_MAX &&
	       (n = read(fd, *data + *size, BPF_OBJECT_MAX + 1 - *size)) > 0)
		*size += (size_t)n;
	close(fd);
	if (n < 0)
		return file_refused(file, strerror(errno));
	if (*size > BPF_OBJECT_MAX)
		return file_refused(file, "is larger than 1 MiB, the maximum");
	return CTL_OK;
}

/*
 * Return the name of a file without its folders, cut to the length that the daemon accepts.
 */
static json_t *
file_name(const char *file)
{
	const char *slash = strrchr(file, '/');
	char name[HOOK_FILE_STRLEN];
	json_t *json;

	snprintf(name, sizeof(name), "%s", slash != NULL ? slash + 1 : file);
	json = json_string(name);
	return json != NULL ? json : json_string("?"); /* the name is not UTF-8 */
}

/* Send the instructions, a part in each request. Returns an exit code. */
static int
program_send(const struct options *opt, const struct bpf_object *object, const char *file,
	     const char *dev)
{
	uint32_t id = fnv1a(FNV1A_BEGIN, object->ins, object->n * HOOK_INSTRUCTION_BYTES);
	int rc = CTL_OK;

	for (size_t at = 0; at < object->n && rc == CTL_OK; at += HOOK_PART_MAX) {
		size_t n = object->n - at < HOOK_PART_MAX ? object->n - at : HOOK_PART_MAX;
		char *text = base64_encode(object->ins + at * HOOK_INSTRUCTION_BYTES,
					   n * HOOK_INSTRUCTION_BYTES);
		json_t *request = json_pack(
			"{s:{s:s, s:s, s:o, s:I, s:I, s:I, s:s}}", "hook", "do", "load",
			"dev", dev, "file", file_name(file), "id", (json_int_t)id, "at",
			(json_int_t)at, "of", (json_int_t)object->n, "program", text);

		free(text);
		rc = conn_ask(opt->socket, request, NULL, NULL);
		json_decref(request);
	}
	return rc;
}

static int
hook_load(const struct options *opt, const char *file, const char *dev)
{
	struct bpf_object object;
	char why[256];
	uint8_t *data;
	size_t size;
	int rc = file_read(file, &data, &size);

	if (rc == CTL_OK && bpf_object_find(data, size, &object, why, sizeof(why)) < 0)
		rc = file_refused(file, why);
	if (rc == CTL_OK && object.n > HOOK_INSTRUCTIONS_MAX)
		rc = file_refused(file, "has more than 4096 instructions");
	if (rc == CTL_OK)
		rc = program_send(opt, &object, file, dev);
	free(data);
	return rc;
}

static int
hook_unload(const struct options *opt, const char *dev)
{
	json_t *request = json_pack("{s:{s:s, s:s}}", "hook", "do", "unload", "dev", dev);
	int rc = conn_ask(opt->socket, request, NULL, NULL);

	json_decref(request);
	return rc;
}

static int
hook_run(const struct options *opt, int n, char **word)
{
	bool load = n > 0 && strcmp(word[0], "load") == 0;
	int at = load ? 2 : 1; /* index of the word `dev` */
	int rc;

	if (n > 0 && !load && strcmp(word[0], "unload") != 0)
		return cli_unexpected(word[0], &cmd_hook);
	if (n > at && strcmp(word[at], "dev") != 0)
		return cli_unexpected(word[at], &cmd_hook);
	if (n > at + 2)
		return cli_unexpected(word[at + 2], &cmd_hook);
	if (n < at + 2) {
		fputs("fpmctl: hook needs `load FILE dev NAME` or `unload dev NAME`\n",
		      stderr);
		return cli_usage(&cmd_hook);
	}
	rc = load ? hook_load(opt, word[1], word[3]) : hook_unload(opt, word[2]);
	if (rc == CTL_OK && opt->json)
		json_rows_end(0);
	else if (rc == CTL_OK)
		puts(load ? "This lasts until the daemon ends, also by a crash or `fpmctl "
			    "restart`:\nload it again then."
			  : "unloaded");
	return rc;
}

static void
hook_complete(FILE *out, int n, char **word)
{
	if (n == 0)
		fputs("load unload\n", out);
	else if (n == (strcmp(word[0], "load") == 0 ? 2 : 1))
		fputs("dev\n", out);
}

const struct command cmd_hook = {
	.name = "hook",
	.words = "load FILE dev NAME | unload dev NAME",
	.text = "run a program on the packets of an interface",
	.run = hook_run,
	.options = OPT_JSON,
	.file_word = 1,
	.help = hook_help,
	.complete = hook_complete,
};
