/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * base64: octets in JSON. RFC 4648, section 4.                                  [any thread]
 */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include <stddef.h>
#include <stdint.h>

/* `len` octets as text, which the caller frees; aborts when memory is out. */
char *base64_encode(const uint8_t *data, size_t len);

/* Octets that `len` characters stand for, at most. */
static inline size_t
base64_room(size_t len)
{
	return len / 4 * 3;
}

/*
 * The octets that base64_encode() made `len` characters of, into `out` of base64_room(len)
 * octets. Returns how many. What is no digit counts as the first one.
 */
size_t base64_decode(const char *text, size_t len, uint8_t *out);

#endif
