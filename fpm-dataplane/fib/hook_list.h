/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hook_list: programs of `fpmctl hook` as forwarders run them. A program belongs to the
 * name of an interface, because the number of an interface is reused. Thread manage
 * replaces the list under QSBR; hook/ loads the programs.
 */
#ifndef FIB_HOOK_LIST_H
#define FIB_HOOK_LIST_H

#include <stdalign.h>

#include "base/counters.h"
#include "base/fpm_hook.h"
#include "fib/fib.h"

#define FIB_HOOKS_MAX    64u
#define FIB_HOOK_STRLEN  64 /* octets of a file name, its terminator included */
#define FIB_HOOK_KNOWN   (FPM_DROP | FPM_DSCP(63) | FPM_TABLE(UINT32_MAX))
#define FIB_HOOK_MAIN    254 /* RT_TABLE_MAIN */
#define FIB_HOOK_THREADS COUNTERS_MAX

struct rte_bpf;

/* The memory and the counters of a program in one forwarder, which alone writes to it. */
struct fib_hook_state {
	alignas(64) struct fpm_hook hook; /* W:fwd  the argument of the program */
	/* W:fwd R:ui  packets that the program was run on */
	uint64_t packets;
	uint64_t dropped; /* W:fwd R:ui  errors included */
	uint64_t marked;  /* W:fwd R:ui  got a DSCP */
	uint64_t moved;   /* W:fwd R:ui  were looked up in another table */
	uint64_t errors;  /* W:fwd R:ui  invalid verdicts */
};

/* A program. Immutable once published, but for the memory behind `state`. */
struct fib_hook {
	char dev[16];
	char file[FIB_HOOK_STRLEN]; /* name of its file, without folders */
	uint64_t hash;              /* of the instructions */
	uint64_t loaded_ms;         /* CLOCK_MONOTONIC */
	unsigned int n_instruction;
	uint64_t (*run)(
		void *hook); /* compiled to machine code; NULL: `bpf` is interpreted */
	struct rte_bpf *bpf;
	struct fib_hook_state *state; /* FIB_HOOK_THREADS, by the index of the forwarder */
};

struct fib_hooks {
	unsigned int n;
	struct fib_hook *hook[FIB_HOOKS_MAX];
};

/* Return the programs in force; NULL: there is none. [RCU reader] */
static inline const struct fib_hooks *
fib_hooks(const struct fib *fib)
{
	return atomic_load_explicit(&fib->hooks, memory_order_consume);
}

/* Return the program of the interface with this name; NULL: it has none. */
static inline const struct fib_hook *
fib_hook_find(const struct fib_hooks *hooks, const char *name)
{
	for (unsigned int k = 0; k < hooks->n; k++) {
		const char *dev = hooks->hook[k]->dev;
		unsigned int i = 0;

		while (i < 15 && dev[i] == name[i] && dev[i] != '\0')
			i++;
		if (dev[i] == name[i])
			return hooks->hook[k];
	}
	return NULL;
}

/* Return true if the interface has a program. `hooks` and `iface` may be NULL. */
static inline bool
fib_iface_is_hooked(const struct fib_hooks *hooks, const struct fib_iface *iface)
{
	return __builtin_expect(hooks != NULL, 0) && iface != NULL &&
	       fib_hook_find(hooks, iface->name) != NULL;
}

#endif
