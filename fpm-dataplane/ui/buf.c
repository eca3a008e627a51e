/* SPDX-License-Identifier: BSD-3-Clause */
/* A growing text. Only ui writes to it. buf_reset() frees a large block. */
#include "ui/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEEP_BYTES (64u << 10)

void
buf_reserve(struct buf *b, size_t more)
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
	buf_reserve(b, len);
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
buf_dump(const char *text, size_t len, void *b)
{
	buf_put(b, text, len);
	return 0;
}

void
buf_json(struct buf *b, const json_t *row)
{
	/*
	 * A double keeps 15 decimal digits, so 0.3 is written as 0.3.
	 */
	json_dump_callback(row, buf_dump, b, JSON_COMPACT | JSON_REAL_PRECISION(15));
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
