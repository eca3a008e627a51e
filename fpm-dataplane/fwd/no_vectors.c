/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stand in for the files *_avx512.c where they are not built. No code calls the other
 * functions when fwd_has_avx512() is false.
 */
#include <stdlib.h>

#include "fwd/cpu.h"
#include "fwd/fast.h"
#include "fwd/tx.h"

bool
fwd_has_avx512(void)
{
	return false;
}

uint64_t
fwd_look_avx512(struct burst *b, uint8_t tag_bytes)
{
	abort();
}

unsigned int
fwd_fast_avx512(struct burst *b)
{
	abort();
}

bool
fwd_rewrite_avx512(struct burst *b)
{
	abort();
}

uint64_t
fwd_spread_avx512(struct burst *b)
{
	abort();
}
