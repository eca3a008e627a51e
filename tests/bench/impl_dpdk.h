/* SPDX-License-Identifier: BSD-3-Clause */
/* Measure the growth of EAL's heap since a mark: the memory of a structure. */
#ifndef IMPL_DPDK_H
#define IMPL_DPDK_H

#include <rte_malloc.h>
#include "bench.h"

static inline size_t
dpdk_heap_now(void)
{
	struct rte_malloc_socket_stats st = {0};

	rte_malloc_get_socket_stats(0, &st);
	return st.heap_allocsz_bytes;
}

static inline void
dpdk_heap_mark(struct structure *s)
{
	s->heap_mark = dpdk_heap_now();
}

/* Call this after the load, and before the next structure is opened. */
static inline size_t
dpdk_heap_grown(const struct structure *s)
{
	return dpdk_heap_now() - s->heap_mark;
}

#endif
