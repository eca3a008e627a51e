/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Select from the rows that the owner has sent, a slice at a time, and write them for the
 * client. Runs in ui; keeps no state.
 */
#include "ui/internal.h"

#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/filter.h"
#include "base/prefix.h"

/* --- selection ------------------------------------------------------------------------ */

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

/*
 * Return true if a line ("2026-11-22T02:24:21.764Z I port: ...") has this level or a more
 * severe level.
 */
static bool
line_has_level(const char *line, const char *level)
{
	const char *blank = strchr(line, ' ');
	const char *at =
		blank != NULL && blank[1] != '\0' ? strchr(FILTER_LEVELS, blank[1]) : NULL;

	return at != NULL && at - FILTER_LEVELS <= filter_level(level);
}

static bool
row_matches_word(const struct filter_word *word, const json_t *row, const char *value)
{
	const char *text = row_text(row, word->key);

	switch (word->kind) {
	case FILTER_ADDRESS:
		return address_is_same(text, value);
	case FILTER_SOURCE: /* the name that `show routes` prints as SOURCE */
		if (strcmp(row_text(row, "source"), "connected") == 0 ||
		    strcmp(row_text(row, "source"), "local") == 0)
			text = row_text(row, "source");
		break;
	case FILTER_LEVEL:
		return line_has_level(text, value);
	case FILTER_ANY:
	case FILTER_ONE_OF:
		break;
	}
	return strcmp(text, value) == 0;
}

/*
 * Return true if `row` matches all words that apply to it. With `hops`, `row` is a next
 * hop.
 */
static bool
row_matches_words(const struct filter *c, const json_t *row, bool hops)
{
	for (int i = 0; i < N_FILTER_WORD; i++)
		if (filter_word[i].hops == hops && c->value[i][0] != '\0' &&
		    !row_matches_word(&filter_word[i], row, c->value[i]))
			return false;
	return true;
}

/* Return true if a next hop matches all words for next hops, or no such word is given. */
static bool
row_has_matching_hop(const struct filter *c, const json_t *row)
{
	const json_t *hop;
	bool asked = false;
	size_t h;

	for (int i = 0; i < N_FILTER_WORD; i++)
		asked |= filter_word[i].hops && c->value[i][0] != '\0';
	json_array_foreach (json_object_get(row, "nexthops"), h, hop)
		if (row_matches_words(c, hop, true))
			return true;
	return !asked;
}

/* Return true if the row matches all words. */
static bool
row_matches(const struct filter *c, const json_t *row)
{
	return !c->any ||
	       (row_matches_words(c, row, false) && row_has_matching_hop(c, row));
}

static bool
row_is_selected(const struct rows *out, const json_t *row)
{
	const json_t *value;
	char number[24] = "";

	if (out->filter != NULL && !row_matches(out->filter, row))
		return false;
	if (out->key == NULL)
		return true;
	value = json_object_get(row, out->key);
	if (json_is_integer(value))
		snprintf(number, sizeof(number), "%lld",
			 (long long)json_integer_value(value));
	if (strcmp(out->key, "peer") == 0)
		return address_is_same(row_text(row, "peer"), out->value);
	return strcmp(json_is_string(value) ? json_string_value(value) : number,
		      out->value) == 0;
}

/* --- output --------------------------------------------------------------------------- */

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
	if (row_is_selected(out, row)) {
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
