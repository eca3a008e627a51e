/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs of `fpmctl hook` that a verifier took for right once, and that a compiler makes wrong code
 * of.
 *
 * link: fpm-dataplane/hook/ fpm-dataplane/fib/ fpm-dataplane/base/
 * link: poptrie/
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <linux/bpf.h>
#include <rte_bpf.h>
#include <rte_log.h>
#include <string.h>

#include "fib/hook.h"
#include "hook/check.h"
#include "hook/hook.h"
#include "hook/verify.h"
#include "bpf_ins.h"

static char why[512];

/* Octets at an unknown place of a word of the stack are a part of it, not the word. */
static void
a_part_of_a_word_of_the_stack_is_not_the_word(void **state)
{
	/* At -8 to -1, together 8 octets. */
#define PART(width, mask, to)                                                              \
	LDX(BPF_B, 5, 1, 16), ALU_K(BPF_AND, 5, mask), MOV_X(4, 10), ALU_X(BPF_ADD, 4, 5), \
		LDX(width, to, 4, -8)
	const struct bpf_insn address[] = {STX(BPF_DW, 10, 1, -8), PART(BPF_B, 7, 3),
					   LDX(BPF_B, 0, 3, 0), EXIT()};
	const struct bpf_insn number[] = {MOV_K(2, 1000),          STX(BPF_DW, 10, 2, -8),
					  PART(BPF_B, 7, 3),       ALU_X(BPF_ADD, 1, 3),
					  LDX(BPF_B, 0, 1, -1000), EXIT()};
	const struct bpf_insn right[] = {MOV_K(2, 1000),      STX(BPF_DW, 10, 2, -8),
					 PART(BPF_B, 7, 3),   ALU_X(BPF_ADD, 1, 3),
					 LDX(BPF_B, 0, 1, 0), EXIT()};

	assert_true(hook_verify(address, 8, why, sizeof(why)) < 0);
	assert_non_null(strstr(why, "takes a number for an address"));
	assert_true(hook_verify(number, 10, why, sizeof(why)) < 0);
	assert_non_null(strstr(why, "may reach beyond struct fpm_hook"));
	assert_int_equal(hook_verify(right, 10, why, sizeof(why)), 0);
}

#define COMPILES(...)                                                \
	({                                                           \
		const struct bpf_insn ins_[] = {__VA_ARGS__};        \
		hook_compiles(ins_, sizeof(ins_) / sizeof(ins_[0])); \
	})

/* The compilers of DPDK get some programs wrong. */
static void
only_programs_that_compile_right_are_compiled(void **state)
{
#ifdef __x86_64__
	assert_true(COMPILES(MOV_K(0, 0), EXIT()));
	assert_true(COMPILES(MOV_K(0, 0), JMP_K(BPF_JSET, 0, 128, 0), EXIT()));
#else
	assert_false(COMPILES(MOV_K(0, 0), EXIT()));
#endif
	assert_false(COMPILES(MOV_K(0, 0), JMP_K(BPF_JEQ, 0, 1, 1), EXIT(), EXIT()));
	assert_false(COMPILES(MOV_K(0, 0), JMP_K(BPF_JSET, 0, 127, 0), EXIT()));
	assert_false(COMPILES(MOV_K(0, 0), ALU_X(BPF_LSH, 0, 0), EXIT()));
}

/* A second exit, at any distance from the first, does as the interpreter does. */
static void
a_second_exit_is_right_at_any_distance(void **state)
{
	static struct fpm_hook argument;
	struct bpf_insn ins[80];

	for (unsigned int k = 0; k < 60 * 8; k++) {
		unsigned int n = 0, far = k / 8;
		struct fib_hook *hook;

		ins[n++] = LDX(BPF_B, 0, 1, 0);
		ins[n++] = JMP_K(BPF_JNE, 0, 0, 1);
		ins[n++] = EXIT();
		for (unsigned int i = 0; i < far; i++) /* of different sizes */
			ins[n++] = ALU_K(BPF_ADD, 0, 1);
		for (unsigned int i = 0; i < k % 8; i++)
			ins[n++] = MOV_X(2, 0);
		ins[n++] = EXIT();
		hook = hook_program_new(ins, n, why, sizeof(why));
		assert_non_null(hook);
		for (uint32_t first = 0; first < 2; first++) {
			argument.length = first;
			assert_int_equal(hook->run != NULL
						 ? hook->run(&argument)
						 : rte_bpf_exec(hook->bpf, &argument),
					 first == 0 ? 0 : first + far);
		}
		hook_program_free(hook);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_part_of_a_word_of_the_stack_is_not_the_word),
		cmocka_unit_test(only_programs_that_compile_right_are_compiled),
		cmocka_unit_test(a_second_exit_is_right_at_any_distance),
	};

	rte_log_set_global_level(RTE_LOG_EMERG); /* of refused programs */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
