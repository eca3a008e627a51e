/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * errmsg: format the reason of a refusal as a sentence for the client. Any thread, no
 * state.
 */
#ifndef BASE_ERRMSG_H
#define BASE_ERRMSG_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

/* Write the sentence to `why`, cut to `size` octets. Returns `rc`. */
static inline int __attribute__((format(printf, 4, 5)))
why_not(char *why, size_t size, int rc, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, size, fmt, ap);
	va_end(ap);
	return rc;
}

#endif
