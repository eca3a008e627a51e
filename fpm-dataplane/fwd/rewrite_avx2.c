/* SPDX-License-Identifier: BSD-3-Clause */
/* rewrite_avx2: rewrite_vectors.h, compiled for CPUs with AVX2.                  [fwd-n] */
#include "fwd/target_x86.h"
#include "fwd/fast.h"
#include "port/vlan_tags.h"

FWD_TARGET_BEGIN("avx2,bmi,bmi2,popcnt")

struct entries {
	__m256i ifidx[4], l3_len[4];
};

#include "fwd/vector_avx2.h"

#include "fwd/rewrite_vectors.h"

INLINE void
entries_load(struct entries *e, const struct burst *b)
{
	uint16_t ifidx[BURST_MAX];

	for (unsigned int i = 0; i < BURST_MAX; i++)
		ifidx[i] = (uint16_t)b->hop[i];
	for (unsigned int i = 0; i < 4; i++) {
		e->ifidx[i] = _mm256_loadu_si256((const void *)(ifidx + 16 * i));
		e->l3_len[i] = _mm256_loadu_si256((const void *)(b->l3_len + 16 * i));
	}
}

/* Return a bit for each of 64 entries, from comparisons of 16 each. */
INLINE uint64_t
bits_of_words(const __m256i is[4])
{
	octets64 x;

	for (unsigned int i = 0; i < 2; i++)
		x.half[i] = _mm256_permute4x64_epi64(
			_mm256_packs_epi16(is[2 * i], is[2 * i + 1]), 0xd8);
	return bits_of_octets(x);
}

INLINE uint64_t
entries_of(const struct entries *e, uint16_t ifidx)
{
	__m256i of = _mm256_set1_epi16((short)ifidx), is[4];

	for (unsigned int i = 0; i < 4; i++)
		is[i] = _mm256_cmpeq_epi16(e->ifidx[i], of);
	return bits_of_words(is);
}

INLINE uint64_t
entries_longer(const struct entries *e, uint16_t mtu)
{
	__m256i most = _mm256_set1_epi16((short)mtu), fits[4];

	for (unsigned int i = 0; i < 4; i++)
		fits[i] = _mm256_cmpeq_epi16(_mm256_max_epu16(e->l3_len[i], most), most);
	return ~bits_of_words(fits);
}

INLINE bool
burst_any_mtu_class(const struct burst *b)
{
	const fib_path class = (FIB_MTU_MAX - 1) << 18; /* see path_mtu_class() */
	fib_path any = 0;

	for (unsigned int i = 0; i < b->n; i++)
		any |= b->path[i];
	return (any & class) != 0;
}

bool
fwd_rewrite_avx2(struct burst *b)
{
	return rewrite_vectors(b);
}

bool
fwd_rewrite_labels_avx2(struct burst *b, enum fwd_labels_do what)
{
	return rewrite_labels(b, what);
}

FWD_TARGET_END
