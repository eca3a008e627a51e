/* SPDX-License-Identifier: BSD-3-Clause */
/* Encode and decode base64. Any thread; no state. */
#include "base/base64.h"

#include <stdlib.h>
#include <string.h>

static const char digits[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *
base64_encode(const uint8_t *data, size_t len)
{
	char *text = malloc((len + 2) / 3 * 4 + 1), *to = text;

	if (text == NULL)
		abort();
	for (size_t i = 0; i < len; i += 3) {
		uint32_t v = (uint32_t)data[i] << 16;

		if (i + 1 < len)
			v |= (uint32_t)data[i + 1] << 8;
		if (i + 2 < len)
			v |= data[i + 2];
		*to++ = digits[v >> 18];
		*to++ = digits[v >> 12 & 63];
		*to++ = i + 1 < len ? digits[v >> 6 & 63] : '=';
		*to++ = i + 2 < len ? digits[v & 63] : '=';
	}
	*to = '\0';
	return text;
}

static unsigned int
digit_of(char c)
{
	const char *at = c != '\0' ? strchr(digits, c) : NULL;

	return at != NULL ? (unsigned int)(at - digits) : 0;
}

size_t
base64_decode(const char *text, size_t len, uint8_t *out)
{
	const uint8_t *start = out;

	for (; len >= 4; len -= 4, text += 4) {
		uint32_t v = digit_of(text[0]) << 18 | digit_of(text[1]) << 12 |
			     digit_of(text[2]) << 6 | digit_of(text[3]);

		*out++ = (uint8_t)(v >> 16);
		if (text[2] != '=')
			*out++ = (uint8_t)(v >> 8);
		if (text[3] != '=')
			*out++ = (uint8_t)v;
	}
	return (size_t)(out - start);
}
