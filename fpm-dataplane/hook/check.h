/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check: tests of a program before librte_bpf sees it.                      [any thread]
 */
#ifndef HOOK_CHECK_H
#define HOOK_CHECK_H

#include <stdbool.h>
#include <stddef.h>

struct bpf_insn;

/*
 * The most instructions that the verifier of DPDK may have to look at. The verifier follows
 * each path through the program, and in 22.11 it does not notice that two paths have met.
 * It takes less than a second for this number.
 */
#define HOOK_WORK_MAX 1000000u

/*
 * Check `n` instructions. A program may have only known instructions, no call, no jump back
 * or into the middle of an instruction, and no division by a register. Each path has an
 * end, and all paths together have at most HOOK_WORK_MAX instructions. Return 0, or -EINVAL
 * with a sentence in `why`. verify.h checks the accesses to memory.
 */
int hook_check(const struct bpf_insn *ins, size_t n, char *why, size_t why_size);

/*
 * Return true if the compiler of DPDK may compile a program that hook_check() has passed.
 *
 * The compiler for x86-64 makes wrong code in three cases. After BPF_JSET with a constant
 * of one octet, the CPU reads instructions at wrong places. A shift of a register by itself
 * has a wrong result (22.11). If a second exit is 127 or 128 octets behind the first exit,
 * the jump to it has a wrong target. So only programs with one exit are compiled. On other
 * CPUs no program is compiled, because no test has compared the code with the interpreter.
 */
bool hook_compiles(const struct bpf_insn *ins, size_t n);

#endif
