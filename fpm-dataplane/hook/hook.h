/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hook: the programs of `fpmctl hook`. Thread manage loads and removes them, and publishes
 * their list as fib->hooks. Forwarders run them (fwd/hook.c).
 */
#ifndef HOOK_HOOK_H
#define HOOK_HOOK_H

#include <stddef.h>
#include <stdint.h>

#include "base/hook_conf.h"

struct fib;
struct fib_hook;
struct hooks;

/* Return an empty list; NULL if out of memory.                                    [main] */
struct hooks *hooks_new(struct fib *fib);
/*
 * Log which programs end with the daemon, because a successor does not have them. Call this
 * after thread manage has stopped. NULL is allowed.                                  [main]
 */
void hooks_end(const struct hooks *hooks);
/* Free the list and its programs, which no thread reads now; NULL is allowed.     [main] */
void hooks_free(struct hooks *hooks);

/*
 * Take a program, or a part of a program. After its last part, verify the program and put
 * it in place of the program that the interface has. Return 0, or with a sentence in `why`
 * -ENOENT (there is no interface of that name) or another -errno. Waits for a grace period.
 *                                                                                  [manage]
 */
int hooks_load(struct hooks *hooks, const struct hook_want *want, char *why,
	       size_t why_size);

/* Remove the program of an interface. Return 0 or -ENOENT, as hooks_load().     [manage] */
int hooks_unload(struct hooks *hooks, const char *dev, char *why, size_t why_size);

/*
 * Verify a program and make it ready to run, with memory for all forwarders. Return NULL,
 * with a sentence in `why`, if it is refused. hook_program_free() frees it.
 *
 * ins  `n` instructions of eBPF, 8 octets each, in the byte order of this CPU.
 */
struct fib_hook *hook_program_new(const void *ins, unsigned int n, char *why,
				  size_t why_size);
void hook_program_free(struct fib_hook *hook);

#endif
