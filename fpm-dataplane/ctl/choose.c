/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Words of `fpmctl show` that choose among rows: to the request, the help and the completion.
 * Which there are is base/filter.c, and the daemon chooses (ui/rows.c).
 */
#include "ctl/choose.h"

int
choose_read(struct choose *c, int k, const char *value)
{
	char why[CHOOSE_WHY];

	if (choose_take(c, k, value != NULL ? value : "", why, sizeof(why)) == 0)
		return CTL_OK;
	fprintf(stderr, "fpmctl: %s\n", why);
	/* A list says enough. */
	return choose_values(k, " ", why, sizeof(why))[0] != '\0' ? CTL_USAGE
								  : usage("show");
}

void
choose_ask(const struct choose *c, json_t *request)
{
	for (int i = 0; i < N_CHOOSE; i++)
		if (c->value[i][0] != '\0')
			json_object_set_new(request, choose_word[i].word,
					    json_string(c->value[i]));
}

void
choose_help(FILE *out, const char *show)
{
	const char *gap = "          only with ";

	for (int i = 0; i < N_CHOOSE; i++)
		if (choose_find(show, choose_word[i].word) == i) {
			fprintf(out, "%s%s %s", gap, choose_word[i].word,
				choose_word[i].value);
			gap = ", ";
		}
	if (gap[0] == ',')
		fputc('\n', out);
}

void
choose_complete(FILE *out, const char *show, const char *last)
{
	int k = choose_find(show, last);
	char buf[CHOOSE_WHY];

	if (k >= 0)
		fputs(choose_values(k, " ", buf, sizeof(buf)), out);
	else
		fprintf(out, " %s", choose_words(show, buf));
}
