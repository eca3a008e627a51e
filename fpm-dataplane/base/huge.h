/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * huge: memory for large tables that are read here and there: on huge pages, where there
 * are any, a table of a million entries does not miss the TLB with each of them.
 */
#ifndef BASE_HUGE_H
#define BASE_HUGE_H

#include <stddef.h>

#define HUGE_BYTES ((size_t)2 << 20)

/* HUGE_BYTES, so aligned, zero. Returns NULL when memory is out.          [any thread] */
void *huge_new(void);
/* NULL is fine. */
void huge_free(void *mem);

#endif
