/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libFuzzer target: any octets as a configuration file. Either each error has a line of its
 * own that is safe for a terminal, or the configuration is equal after it is written out
 * and read again.
 */
#include "config/config.h"
#include "config/load.h"
#include "config/print.h"
#include "config/yaml_walk.h"
#include "must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Parse the octets of a file. Return the number of errors. The caller frees *said. */
static int
load(const void *text, size_t size, struct config *conf, char **said)
{
	size_t len;
	FILE *err = open_memstream(said, &len);
	int n;

	MUST(err != NULL);
	n = config_parse("fuzz.yaml", text, size, conf, err);
	fclose(err);
	/* Messages quote names and values of the file: none may contain control characters.
	 * */
	for (size_t i = 0; i < len; i++)
		MUST(((uint8_t)(*said)[i] >= ' ' && (*said)[i] != 0x7f) ||
		     (*said)[i] == '\n');
	return n;
}

static unsigned int
lines_of(const char *said)
{
	unsigned int n = 0;

	for (; *said; said++)
		n += *said == '\n';
	return n;
}

static void
complain(void *ctx, const struct config_change *change)
{
	fprintf(stderr, "%s: %s became %s\n", change->path, change->from, change->to);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct config conf, again;
	char *said, *shown = NULL;
	size_t len;
	FILE *out;
	int n = load(data, size, &conf, &said);

	MUST(n >= 0);
	MUST(lines_of(said) ==
	     (n > CFG_ERRORS_SHOWN ? CFG_ERRORS_SHOWN + 1u : (unsigned)n));
	free(said);
	if (n > 0)
		return 0;
	out = open_memstream(&shown, &len);
	MUST(out != NULL);
	config_show(&conf, out);
	fclose(out);
	n = load(shown, len, &again, &said);
	if (n != 0)
		fprintf(stderr, "%s\n%s", shown, said);
	MUST(n == 0);
	MUST(config_diff(&conf, &again, complain, NULL) == 0);
	free(said);
	free(shown);
	return 0;
}
