/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rows on their way out: which of those are wanted that the thread which knows has handed over, a
 * slice at a time, and how they are written. Runs in ui; nothing is kept.
 */
#include "ui/internal.h"

#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/filter.h"
#include "base/prefix.h"

/* --- which are wanted --------------------------------------------------------------------- */

static const char *
row_text(const json_t *row, const char *key)
{
	const char *text = json_string_value(json_object_get(row, key));

	return text != NULL ? text : "";
}

static bool
address_is_same(const char *text, const char *other)
{
	struct prefix a, b;

	return prefix_parse(text, &a, NULL) == 0 && prefix_parse(other, &b, NULL) == 0 &&
	       a.family == b.family && memcmp(&a.addr, &b.addr, sizeof(a.addr)) == 0;
}

/* "2026-11-22T02:24:21.764Z I port: ...": as bad as the level, or worse? */
static bool
line_is_bad_enough(const char *line, const char *level)
{
	const char *blank = strchr(line, ' ');
	const char *at =
		blank != NULL && blank[1] != '\0' ? strchr(FILTER_LEVELS, blank[1]) : NULL;

	return at != NULL && at - FILTER_LEVELS <= filter_level(level);
}

static bool
row_is_so(const struct filter_word *word, const json_t *row, const char *value)
{
	const char *text = row_text(row, word->key);

	switch (word->kind) {
	case FILTER_ADDRESS:
		return address_is_same(text, value);
	case FILTER_SOURCE: /* as the table of routes has it */
		if (strcmp(row_text(row, "source"), "zebra") != 0)
			text = row_text(row, "source");
		break;
	case FILTER_LEVEL:
		return line_is_bad_enough(text, value);
	case FILTER_ANY:
	case FILTER_ONE_OF:
		break;
	}
	return strcmp(text, value) == 0;
}

/* Is all so that is asked of the row itself, or, `hops`, of one way out? */
static bool
row_is_all_so(const struct filter *c, const json_t *row, bool hops)
{
	for (int i = 0; i < N_FILTER_WORD; i++)
		if (filter_word[i].hops == hops && c->value[i][0] != '\0' &&
		    !row_is_so(&filter_word[i], row, c->value[i]))
			return false;
	return true;
}

/* Is there one way out for which all is so that is asked of ways? */
static bool
row_has_way(const struct filter *c, const json_t *row)
{
	const json_t *hop;
	bool asked = false;
	size_t h;

	for (int i = 0; i < N_FILTER_WORD; i++)
		asked |= filter_word[i].hops && c->value[i][0] != '\0';
	json_array_foreach (json_object_get(row, "nexthops"), h, hop)
		if (row_is_all_so(c, hop, true))
			return true;
	return !asked;
}

/* Is the row one of those that were asked for? */
static bool
row_is_chosen(const struct filter *c, const json_t *row)
{
	return !c->any || (row_is_all_so(c, row, false) && row_has_way(c, row));
}

static bool
row_is_wanted(const struct rows *out, const json_t *row)
{
	const json_t *value;
	char number[24] = "";

	if (out->choose != NULL && !row_is_chosen(out->choose, row))
		return false;
	if (out->key == NULL)
		return true;
	value = json_object_get(row, out->key);
	if (json_is_integer(value))
		snprintf(number, sizeof(number), "%lld",
			 (long long)json_integer_value(value));
	return strcmp(json_is_string(value) ? json_string_value(value) : number,
		      out->value) == 0;
}

/* --- how they are written ----------------------------------------------------------------- */

static void
row_put_octets(struct buf *b, const json_t *row)
{
	const char *text = json_string_value(json_object_get(row, "pcapng"));
	size_t len = text != NULL ? strlen(text) : 0;

	buf_reserve(b, base64_room(len));
	b->len += base64_decode(text, len, (uint8_t *)b->data + b->len);
}

void
rows_put(struct rows *out, json_t *row)
{
	if (row_is_wanted(out, row)) {
		if (out->form == ROWS_ARRAY)
			buf_put(&out->buf, out->n == 0 ? "[" : ",\n", out->n == 0 ? 1 : 2);
		if (out->form == ROWS_OCTETS)
			row_put_octets(&out->buf, row);
		else
			buf_json(&out->buf, row);
		if (out->form == ROWS_LINES)
			buf_put(&out->buf, "\n", 1);
		out->n++;
	}
	json_decref(row);
}

void
rows_end(struct rows *out)
{
	if (out->form == ROWS_ARRAY)
		buf_printf(&out->buf, "%s]\n", out->n == 0 ? "[" : "");
}
