/* SPDX-License-Identifier: BSD-3-Clause */
/* base64: octets as text in JSON. RFC 4648, section 4.                     [any thread] */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include <stddef.h>
#include <stdint.h>

/* Encode `len` octets as text. The caller frees the text. Aborts if out of memory. */
char *base64_encode(const uint8_t *data, size_t len);

/* Return the largest number of octets that `len` characters decode to. */
static inline size_t
base64_room(size_t len)
{
	return len / 4 * 3;
}

/*
 * Decode `len` characters of base64_encode() into `out`, which has base64_room(len)
 * octets. Returns the number of octets. A character that is no digit counts as digit 0.
 */
size_t base64_decode(const char *text, size_t len, uint8_t *out);

#endif
