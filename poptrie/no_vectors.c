/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stand in for the files *_avx2.c and *_avx512.c where they are not built. No code calls
 * these functions, because pt_isa_best() is PT_SCALAR and no table opens its ranges.
 */
#include <stdlib.h>
#include "poptrie/impl.h"

void
pt_bulk4_avx2(const struct pt_view *v, const uint32_t *addr, uint32_t *value,
	      unsigned int n)
{
	abort();
}

void
pt_bulk6_avx2(const struct pt_view *v, const uint8_t *const *addr, uint32_t *value,
	      unsigned int n)
{
	abort();
}

void
pt_bulk4_avx512(const struct pt_view *v, const uint32_t *addr, uint32_t *value,
		unsigned int n)
{
	abort();
}

void
pt_bulk6_avx512(const struct pt_view *v, const uint8_t *const *addr, uint32_t *value,
		unsigned int n)
{
	abort();
}

void
pt_bulk4_small_avx512(const struct pt_view *v, const uint32_t *addr, uint32_t *value,
		      unsigned int n)
{
	abort();
}

void
pt_bulk6_small_avx512(const struct pt_view *v, const uint8_t *const *addr, uint32_t *value,
		      unsigned int n)
{
	abort();
}

void
pt_each4_avx512(const struct poptrie *const *pt, const uint32_t *addr, uint32_t *value,
		unsigned int n)
{
	abort();
}

bool
pt_ranges_bulk_avx512(const struct poptrie *pt, const uint32_t *addr, uint32_t *value,
		      unsigned int n)
{
	abort();
}

bool
pt_ranges_bulk_avx2(const struct poptrie *pt, const uint32_t *addr, uint32_t *value,
		    unsigned int n)
{
	abort();
}

void
pt_each4_avx2(const struct poptrie *const *pt, const uint32_t *addr, uint32_t *value,
	      unsigned int n)
{
	abort();
}
