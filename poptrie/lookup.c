/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lookups: one key, and the scalar bulk variant, which is the reference for the others. Any
 * reader thread. A lookup waits for nothing; it is repeated when the default route changes
 * during it.
 *
 * Tried without gain: setting aside the keys that need a second level, and finishing them
 * together.
 */
#include "poptrie/walk.h"

static enum poptrie_isa most = POPTRIE_AVX512; /* W:before the first table R:any */

void
poptrie_use_at_most(enum poptrie_isa isa)
{
	most = isa;
}

enum poptrie_isa
poptrie_isa_best(void)
{
#ifdef __SANITIZE_THREAD__
	return POPTRIE_SCALAR; /* TSan cannot see vector accesses */
#else
	return (enum poptrie_isa)pt_cpu_isa();
#endif
}

enum poptrie_isa
poptrie_isa_used(void)
{
	enum poptrie_isa best = poptrie_isa_best();

	return best < most ? best : most;
}

enum pt_isa
pt_isa_best(void)
{
	return (enum pt_isa)poptrie_isa_used();
}

uint32_t
poptrie4_lookup(const struct poptrie *pt, uint32_t addr)
{
	const struct pt_view *v = pt_view(pt);
	uint64_t dflt;
	uint32_t value;

	do {
		dflt = dflt_now(v);
		if (v->small)
			value = small4(v, addr);
		else if (v->wide)
			value = wide4(v, addr);
		else
			value = v->leaf32 ? fused4(v, addr, true) : fused4(v, addr, false);
	} while (dflt_changed(v, dflt));
	return or_dflt(value, dflt);
}

uint32_t
poptrie6_lookup(const struct poptrie *pt, const uint8_t *addr)
{
	const struct pt_view *v = pt_view(pt);
	uint64_t dflt;
	uint32_t value;

	do {
		dflt = dflt_now(v);
		value = v->small ? small6(v, addr) : wide6(v, addr);
	} while (dflt_changed(v, dflt));
	return or_dflt(value, dflt);
}

void
poptrie_prefetch(const struct poptrie *pt)
{
	__builtin_prefetch(pt);
	__builtin_prefetch(pt->ranges[0].last);
	__builtin_prefetch(pt->ranges[0].value);
}

void
poptrie4_lookup_bulk(const struct poptrie *pt, const uint32_t *addr, uint32_t *value,
		     unsigned int n)
{
	const struct pt_view *v;

	if (pt_has_ranges(pt) &&
	    (pt->isa == PT_AVX512 ? pt_ranges_bulk_avx512(pt, addr, value, n)
				  : pt_ranges_bulk_avx2(pt, addr, value, n)))
		return;
	v = pt_view(pt);
	v->bulk4(v, addr, value, n);
}

void
poptrie4_lookup_each(const struct poptrie *const *pt, const uint32_t *addr, uint32_t *value,
		     unsigned int n)
{
	switch (pt_isa_best()) {
	case PT_AVX512:
		pt_each4_avx512(pt, addr, value, n);
		break;
	case PT_AVX2:
		pt_each4_avx2(pt, addr, value, n);
		break;
	case PT_SCALAR:
		for (unsigned int i = 0; i < n; i++)
			poptrie4_lookup_bulk(pt[i], &addr[i], &value[i], 1);
		break;
	}
}

void
poptrie6_lookup_bulk(const struct poptrie *pt, const uint8_t *const *addr, uint32_t *value,
		     unsigned int n)
{
	const struct pt_view *v = pt_view(pt);

	v->bulk6(v, addr, value, n);
}

static __attribute__((noinline)) void
many4(const struct pt_view *v, const uint32_t *addr, uint32_t *value, unsigned int n)
{
	if (v->leaf32)
		scalar_bulk4(v, addr, value, n, true);
	else
		scalar_bulk4(v, addr, value, n, false);
}

static void
bulk4_fused(const struct pt_view *v, const uint32_t *addr, uint32_t *value, unsigned int n)
{
	few_or_many4(v, addr, value, n, many4);
}

static __attribute__((noinline)) void
many_wide(const struct pt_view *v, union keys key, uint32_t *value, unsigned int n)
{
	walk_bulk(v, key, value, n, WIDE4);
}

static void
bulk4_wide(const struct pt_view *v, const uint32_t *addr, uint32_t *value, unsigned int n)
{
	few_or_walk(v, (union keys){.ip4 = addr}, value, n, WIDE4, many_wide);
}

static void
bulk6(const struct pt_view *v, const uint8_t *const *addr, uint32_t *value, unsigned int n)
{
	walk_bulk(v, (union keys){.ip6 = addr}, value, n, WIDE6);
}

static __attribute__((noinline)) void
many_small4(const struct pt_view *v, union keys key, uint32_t *value, unsigned int n)
{
	walk_bulk(v, key, value, n, SMALL4);
}

static void
bulk4_small(const struct pt_view *v, const uint32_t *addr, uint32_t *value, unsigned int n)
{
	few_or_walk(v, (union keys){.ip4 = addr}, value, n, SMALL4, many_small4);
}

static __attribute__((noinline)) void
many_small6(const struct pt_view *v, union keys key, uint32_t *value, unsigned int n)
{
	walk_bulk(v, key, value, n, SMALL6);
}

static void
bulk6_small(const struct pt_view *v, const uint8_t *const *addr, uint32_t *value,
	    unsigned int n)
{
	few_or_walk(v, (union keys){.ip6 = addr}, value, n, SMALL6, many_small6);
}

/*
 * Choose the bulk variant. Wide IPv4 tables have the scalar variant only, because they are
 * for CPUs without atomic accesses of 16 octets.
 */
void
pt_bulk_choose(struct pt_view *v, bool ip6, enum pt_isa isa)
{
	if (v->small && ip6)
		v->bulk6 = isa == PT_AVX512 ? pt_bulk6_small_avx512 : bulk6_small;
	else if (v->small)
		v->bulk4 = isa == PT_AVX512 ? pt_bulk4_small_avx512 : bulk4_small;
	else if (ip6)
		v->bulk6 = isa == PT_AVX512 ? pt_bulk6_avx512
			   : isa == PT_AVX2 ? pt_bulk6_avx2
					    : bulk6;
	else if (v->wide)
		v->bulk4 = bulk4_wide;
	else
		v->bulk4 = isa == PT_AVX512 ? pt_bulk4_avx512
			   : isa == PT_AVX2 ? pt_bulk4_avx2
					    : bulk4_fused;
}
