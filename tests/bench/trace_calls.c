/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Define the functions that the compiler calls before each load and store in trace.c.
 * Stores are ignored.
 */
#include "trace.h"

#define LOAD(n)                                         \
	void __asan_load##n##_noabort(uintptr_t addr);  \
	void __asan_load##n##_noabort(uintptr_t addr)   \
	{                                               \
		trace_load(addr, n);                    \
	}                                               \
	void __asan_store##n##_noabort(uintptr_t addr); \
	void __asan_store##n##_noabort(uintptr_t addr)  \
	{                                               \
	}
LOAD(1)
LOAD(2)
LOAD(4)
LOAD(8)
LOAD(16)

void __asan_loadN_noabort(uintptr_t addr, size_t bytes);
void __asan_storeN_noabort(uintptr_t addr, size_t bytes);
void __asan_handle_no_return(void);

void
__asan_loadN_noabort(uintptr_t addr, size_t bytes)
{
	trace_load(addr, bytes);
	trace_load(addr + bytes - 1, bytes);
}

void
__asan_storeN_noabort(uintptr_t addr, size_t bytes)
{
}

void
__asan_handle_no_return(void)
{
}
