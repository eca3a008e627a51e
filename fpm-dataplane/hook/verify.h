/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verify: prove that a program touches no memory but its own.               [any thread]
 */
#ifndef HOOK_VERIFY_H
#define HOOK_VERIFY_H

#include <stddef.h>

struct bpf_insn;

/*
 * Verify `n` instructions that hook_check() has passed: each access is in struct fpm_hook
 * or in the 512 octets of the stack, each register and each octet of the stack has a value
 * before it is read, and the result is a number. Return 0, or -EINVAL with a sentence in
 * `why`. The time grows in proportion to `n`, because all jumps lead forward, and because
 * where paths meet they continue as one: a register may then have a value of any of them.
 */
int hook_verify(const struct bpf_insn *ins, size_t n, char *why, size_t why_size);

#endif
