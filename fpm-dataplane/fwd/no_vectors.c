/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * no_vectors: stand in for the files *_avx2.c, *_avx512.c and *_sse4.c where they are not
 * built. No code calls these functions, because fwd_uses_avx2(), fwd_uses_avx512() and
 * fwd_uses_sse4() are false.
 */
#include <stdlib.h>

#include "fwd/cpu.h"
#include "fwd/fast.h"
#include "fwd/tx.h"

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

bool
fwd_rewrite_avx2(struct burst *b)
{
	abort();
}

uint64_t
fwd_spread_avx2(struct burst *b)
{
	abort();
}

bool
fwd_rewrite_labels_avx512(struct burst *b, enum fwd_labels_do what)
{
	abort();
}

bool
fwd_rewrite_labels_avx2(struct burst *b, enum fwd_labels_do what)
{
	abort();
}

uint64_t
fwd_look_lanes8(struct burst *b, uint8_t tag_bytes)
{
	abort();
}

unsigned int
fwd_fast_lanes8(struct burst *b)
{
	abort();
}

struct fwd_families
fwd_fast_payloads_lanes8(struct burst *b, uint64_t of, struct fwd_payload kind,
			 uint64_t *done)
{
	abort();
}

uint64_t
fwd_spread_sse4(struct burst *b)
{
	abort();
}
