/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions of arch.h, which each architecture defines in a header of its own.
 *
 * The memory model, for readers that never wait for the writer: a reader loads the view and
 * the default with acquire. Then it loads nodes and leaves; the address of each comes from
 * the node before it. After the last leaf the reader calls pt_reader_fence() and reads the
 * default again. The writer stores each node and each leaf with release.
 */
#ifndef POPTRIE_ARCH_DECL_H
#define POPTRIE_ARCH_DECL_H

#include <string.h>
#include "poptrie/impl.h"

#define PT_INLINE static inline __attribute__((always_inline))

/* A fused node in registers. */
struct pair {
	uint64_t run;
	uint64_t base; /* child_base << 32 | leaf_base */
};

/*
 * Return true if an aligned access of 16 octets is one access; load16() and others need it.
 */
static inline bool pt_has_16_octets(void);

/*
 * Return the widest bulk variant that this CPU runs: it has all features that
 * lookup_avx2.c, or lookup_avx512.c, is compiled for.
 */
static inline enum pt_isa pt_cpu_isa(void);

/* Load a node at once. The compiler must not split the load. */
static inline struct pair load16(const struct pt_fused *f);

/* Load the direct entry of a key at once, and store it into memory. */
static inline void entry_to(struct pt_fused *to, const struct pt_fused *direct,
			    uint32_t addr);

/*
 * Publish a node by one aligned store: no reader can see half of it. Release: a reader that
 * sees it also sees all earlier stores of the caller.
 */
static inline void fused_publish(struct pt_fused *slot, struct pt_fused f);

/* Order the loads before the call (nodes and leaves) before the loads after it. */
static inline void pt_reader_fence(void);

/*
 * Return `value`, or the default if `value` is 0. Select without a branch, because the CPU
 * could not predict it: the traffic decides whether a key has a route.
 */
static inline uint32_t or_dflt(uint32_t value, uint64_t dflt);

/* Return the runs: bit s > 0 is set if value[s] differs from value[s - 1]. Bit 0 is 0. */
static inline uint64_t pt_runs(const uint32_t value[64]);

#endif
