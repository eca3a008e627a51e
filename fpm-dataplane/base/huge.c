/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Allocate memory on transparent huge pages. Nothing has to be reserved. When the kernel
 * has no huge page, the memory is on normal pages. Any thread, no state.
 */
#include "base/huge.h"

#include <stdint.h>
#include <sys/mman.h>

void *
huge_new(void)
{
	uint8_t *raw = mmap(NULL, 2 * HUGE_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t before;

	if (raw == MAP_FAILED)
		return NULL;
	before = -(uintptr_t)raw % HUGE_BYTES;
	if (before > 0)
		munmap(raw, before);
	munmap(raw + before + HUGE_BYTES, HUGE_BYTES - before);
	madvise(raw + before, HUGE_BYTES, MADV_HUGEPAGE); /* a hint; failure is harmless */
	return raw + before;
}

void
huge_free(void *mem)
{
	if (mem != NULL)
		munmap(mem, HUGE_BYTES);
}
