/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * huge: memory for large tables with random access. On huge pages, where the kernel has
 * them, lookups in a table of a million entries cause few TLB misses.
 */
#ifndef BASE_HUGE_H
#define BASE_HUGE_H

#include <stddef.h>

#define HUGE_BYTES ((size_t)2 << 20)

/*
 * Allocate HUGE_BYTES of zeroed memory, aligned to HUGE_BYTES. Returns NULL when memory is
 * out.                                                                        [any thread]
 */
void *huge_new(void);
/* Free memory of huge_new(); NULL is allowed. */
void huge_free(void *mem);

#endif
