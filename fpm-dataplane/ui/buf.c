/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Text that grows, and rows as text. Runs in ui; never written to by anybody else, never kept
 * large once it is empty.
 */
#include "ui/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"

#define KEEP_BYTES (64u << 10)

static void
reserve(struct buf *b, size_t more)
{
	size_t size = b->size == 0 ? 1024 : b->size;

	if (b->len + more <= b->size)
		return;
	while (size < b->len + more)
		size *= 2;
	b->data = realloc(b->data, size);
	if (b->data == NULL)
		abort();
	b->size = size;
}

void
buf_put(struct buf *b, const char *data, size_t len)
{
	reserve(b, len);
	memcpy(b->data + b->len, data, len);
	b->len += len;
}

void
buf_printf(struct buf *b, const char *fmt, ...)
{
	char text[1024];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (n > 0)
		buf_put(b, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

static int
dump(const char *text, size_t len, void *b)
{
	buf_put(b, text, len);
	return 0;
}

void
buf_json(struct buf *b, const json_t *row)
{
	/* Digits that a double holds for sure: seconds stay as short as they were made. */
	json_dump_callback(row, dump, b, JSON_COMPACT | JSON_REAL_PRECISION(15));
}

static bool
is_wanted(const struct rows *out, const json_t *row)
{
	const json_t *value;
	char number[24] = "";

	if (out->choose != NULL && !choose_wants(out->choose, row))
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

static void
octets_put(struct buf *b, const json_t *row)
{
	const char *text = json_string_value(json_object_get(row, "pcapng"));
	size_t len = text != NULL ? strlen(text) : 0;

	reserve(b, base64_room(len));
	b->len += base64_decode(text, len, (uint8_t *)b->data + b->len);
}

void
rows_put(struct rows *out, json_t *row)
{
	if (is_wanted(out, row)) {
		if (out->form == ROWS_ARRAY)
			buf_put(&out->buf, out->n == 0 ? "[" : ",\n", out->n == 0 ? 1 : 2);
		if (out->form == ROWS_OCTETS)
			octets_put(&out->buf, row);
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

void
buf_reset(struct buf *b)
{
	b->len = b->off = 0;
	if (b->size > KEEP_BYTES)
		buf_free(b);
}

void
buf_free(struct buf *b)
{
	free(b->data);
	*b = (struct buf){0};
}
