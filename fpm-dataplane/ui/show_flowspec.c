/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Make the row of `show flowspec` from the summary that fpm-flowspec writes every few
 * seconds (flowspec/fpm_flowspec/helper.py). [ui]
 */
#include "ui/internal.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

#define SUMMARY_BYTES 16384 /* largest size of the file */
#define AGE_MAX_S     1e9
#define SILENT_S      15 /* the program writes every 5 s, and within 12 s if nft is slow */

/* Read the file. Returns its object, or NULL. */
static json_t *
summary_read(const char *path)
{
	char buf[SUMMARY_BYTES];
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	json_t *summary = NULL;
	struct stat st;
	ssize_t n = -1;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		n = read(fd, buf, sizeof(buf));
	close(fd);
	if (n > 0)
		summary = json_loadb(buf, (size_t)n, 0, NULL);
	if (json_is_object(summary))
		return summary;
	json_decref(summary);
	return NULL;
}

/* Copy a text of the summary to the row, without control characters. */
static void
row_set_text(json_t *row, const char *key, const json_t *summary)
{
	const char *text = json_string_value(json_object_get(summary, key));
	char copy[512];

	if (text == NULL)
		return;
	snprintf(copy, sizeof(copy), "%s", text);
	log_harmless(copy);
	json_object_set_new(row, key, json_string(copy));
}

static const char *
summary_state(const json_t *summary, double age_s)
{
	if (age_s > SILENT_S)
		return "silent";
	if (!json_is_null(json_object_get(summary, "nft_error")))
		return "failing";
	if (json_integer_value(json_object_get(summary, "sessions_up")) == 0)
		return "down";
	return "running";
}

json_t *
flowspec_row(const struct ui *ui)
{
	static const char *const count[] = {"sessions", "sessions_up", "installed",
					    "refused", "waiting"};
	json_t *row = json_pack("{s:s, s:n, s:n, s:n, s:b}", "state",
				ui->conf.flowspec == NULL ? "off" : "absent", "age_s",
				"nft_error", "frr_error", "validate", true);
	double age_s;
	json_t *summary;

	for (unsigned int i = 0; i < sizeof(count) / sizeof(count[0]); i++)
		json_object_set_new(row, count[i], json_integer(0));
	if (ui->conf.flowspec == NULL)
		return row;
	summary = summary_read(ui->conf.flowspec);
	if (summary == NULL)
		return row;
	age_s = monotonic_s() - json_number_value(json_object_get(summary, "at_s"));
	/* A time in the future means that the file is damaged or of another program. */
	if (!(age_s > -1. && age_s < AGE_MAX_S))
		age_s = AGE_MAX_S;
	for (unsigned int i = 0; i < sizeof(count) / sizeof(count[0]); i++)
		json_object_set_new(row, count[i],
				    json_integer(json_integer_value(
					    json_object_get(summary, count[i]))));
	row_set_text(row, "nft_error", summary);
	row_set_text(row, "frr_error", summary);
	json_object_set_new(
		row, "validate",
		json_boolean(!json_is_false(json_object_get(summary, "validate"))));
	json_object_set_new(row, "age_s", json_integer(age_s > 0 ? (json_int_t)age_s : 0));
	json_object_set_new(row, "state", json_string(summary_state(summary, age_s)));
	json_decref(summary);
	return row;
}
