/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arch for arm64, whose CPUs reorder loads, and stores. A load through an address that an
 * earlier load returned stays behind that load; everything else needs a fence.
 */
#ifndef POPTRIE_ARCH_ARM64_H
#define POPTRIE_ARCH_ARM64_H

#include <sys/auxv.h>
#include "poptrie/arch_decl.h"

#define PT_HWCAP_USCAT (1ul << 25) /* asm/hwcap.h: FEAT_LSE2 */

/*
 * LDP and STP of 16 aligned octets are one access on CPUs with FEAT_LSE2 (from Armv8.4 on).
 */
static inline bool
pt_has_16_octets(void)
{
	return (getauxval(AT_HWCAP) & PT_HWCAP_USCAT) != 0;
}

static inline enum pt_isa
pt_cpu_isa(void)
{
	return PT_SCALAR;
}

PT_INLINE struct pair
load16(const struct pt_fused *f)
{
	struct pair p;

	__asm__ volatile("ldp %0, %1, %2" : "=r"(p.run), "=r"(p.base) : "Q"(*f));
	return p;
}

PT_INLINE void
entry_to(struct pt_fused *to, const struct pt_fused *direct, uint32_t addr)
{
	struct pair p = load16(direct + (addr >> (32 - PT4_BITS)));

	to->run = p.run;
	to->leaf_base = (uint32_t)p.base;
	to->child_base = (uint32_t)(p.base >> 32);
}

static inline void
fused_publish(struct pt_fused *slot, struct pt_fused f)
{
	uint64_t base = (uint64_t)f.child_base << 32 | f.leaf_base;

	atomic_thread_fence(memory_order_release);
	__asm__ volatile("stp %1, %2, %0" : "=Q"(*slot) : "r"(f.run), "r"(base) : "memory");
}

PT_INLINE void
pt_reader_fence(void)
{
	atomic_thread_fence(memory_order_acquire);
}

/* Select a value. The compiler uses a CSEL. */
PT_INLINE uint32_t
or_dflt(uint32_t value, uint64_t dflt)
{
	return value != 0 ? value : (uint32_t)dflt;
}

static inline uint64_t
pt_runs(const uint32_t value[64])
{
	uint64_t runs = 0;

	for (unsigned int s = 1; s < 64; s++)
		runs |= (uint64_t)(value[s] != value[s - 1]) << s;
	return runs;
}

#endif
