/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * program: verify a program and make it ready to run, by librte_bpf. The library compiles
 * the program to machine code if the process may make memory executable. It interprets the
 * instructions otherwise, and also if hook_compiles() does not trust the machine code. A
 * program gets no functions and no variables of the daemon, only the octets of struct
 * fpm_hook. Both the verifier of this folder and the verifier of the library must accept
 * the program. Any thread; no state.
 */
#include "hook/hook.h"

#include <errno.h>
#include <rte_bpf.h>
#include <rte_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/inet.h"
#include "fib/hook_list.h"
#include "hook/check.h"
#include "hook/verify.h"

static_assert(sizeof(struct ebpf_insn) == HOOK_INSTRUCTION_BYTES, "one instruction");
static_assert(sizeof(struct fpm_hook) % 8 == 0, "counters follow each other by words");

/* Return a number that tells programs apart; it is no proof against forgery. */
static uint64_t
instructions_hash(const uint8_t *ins, unsigned int n)
{
	uint64_t hash = n, word;

	for (unsigned int i = 0; i < n; i++) {
		memcpy(&word, ins + (size_t)i * sizeof(word), sizeof(word));
		hash = mix64(hash ^ mix64(word));
	}
	return hash;
}

struct fib_hook *
hook_program_new(const void *ins, unsigned int n, char *why, size_t why_size)
{
	const struct rte_bpf_prm prm = {
		.ins = ins,
		.nb_ins = n,
		.prog_arg = {.type = RTE_BPF_ARG_PTR, .size = sizeof(struct fpm_hook)}};
	struct rte_bpf_jit jit = {0};
	struct fib_hook *hook;

	if (hook_check(ins, n, why, why_size) < 0 || hook_verify(ins, n, why, why_size) < 0)
		return NULL;
	hook = calloc(1, sizeof(*hook));
	if (hook == NULL)
		abort(); /* out of memory for some hundred octets */
	hook->bpf = rte_bpf_load(&prm);
	if (hook->bpf == NULL) {
		snprintf(why, why_size,
			 "the verifier of DPDK refuses it (%s): `fpmctl show log` has the "
			 "instruction",
			 strerror(rte_errno));
		goto undo;
	}
	if (hook_compiles(ins, n) && rte_bpf_get_jit(hook->bpf, &jit) == 0)
		hook->run = jit.func;
	hook->state = aligned_alloc(alignof(struct fib_hook_state),
				    FIB_HOOK_THREADS * sizeof(hook->state[0]));
	if (hook->state == NULL) {
		snprintf(why, why_size, "out of memory");
		goto undo;
	}
	memset(hook->state, 0, FIB_HOOK_THREADS * sizeof(hook->state[0]));
	hook->n_instruction = n;
	hook->hash = instructions_hash(ins, n);
	return hook;
undo:
	hook_program_free(hook);
	return NULL;
}

void
hook_program_free(struct fib_hook *hook)
{
	if (hook == NULL)
		return;
	rte_bpf_destroy(hook->bpf);
	free(hook->state);
	free(hook);
}
