/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Wrong programs of `fpmctl hook` that a verifier accepted once. Programs from which a
 * compiler makes wrong code. The arithmetic of the verifier's ranges.
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

#include "fib/hook_list.h"
#include "hook/check.h"
#include "hook/hook.h"
#include "hook/range.h"
#include "hook/verify.h"
#include "bpf_ins.h"

static char why[512];

/*
 * A load at an unknown offset in a word of the stack gives a part of the word, not the
 * word.
 */
static void
a_part_of_a_word_of_the_stack_is_not_the_word(void **state)
{
	/*
	 * Load from an unknown offset, 0 to `mask`, in the word at -8 to -1 of the stack.
	 */
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

/* If a part of an address on the stack is overwritten, the word is a number. */
static void
an_address_that_is_partly_overwritten_is_a_number(void **state)
{
	const struct bpf_insn whole[] = {STX(BPF_DW, 10, 1, -8), LDX(BPF_DW, 3, 10, -8),
					 LDX(BPF_B, 0, 3, 0), EXIT()};
	const struct bpf_insn part[] = {MOV_K(2, 1),           STX(BPF_DW, 10, 1, -8),
					STX(BPF_W, 10, 2, -8), LDX(BPF_DW, 3, 10, -8),
					LDX(BPF_B, 0, 3, 0),   EXIT()};

	assert_int_equal(hook_verify(whole, 4, why, sizeof(why)), 0);
	assert_true(hook_verify(part, 6, why, sizeof(why)) < 0);
	assert_non_null(strstr(why, "takes a number for an address"));
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

/* A program with a second exit has the right result, at any distance of the exits. */
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
		for (unsigned int i = 0; i < far; i++) /* compiled to different sizes */
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

/* --- ranges --------------------------------------------------------------------------- */

static void
range_is(struct range r, uint64_t min, uint64_t max)
{
	assert_int_equal(r.min, min);
	assert_int_equal(r.max, max);
}

#define R(min, max) ((struct range){min, max})

/*
 * With ranges that are too narrow, the verifier accepts wrong programs. With ranges that
 * are too wide, it refuses right programs.
 */
static void
the_result_of_an_operation_has_exact_ends(void **state)
{
	static const struct {
		uint8_t op, bits;
		struct range a, b, is;
	} each[] = {
		{BPF_ADD, 64, R(1, 2), R(10, 20), R(11, 22)},
		{BPF_ADD, 64, R(5, 5), R(UINT64_MAX, UINT64_MAX), R(4, 4)},
		{BPF_ADD, 64, R(0, 1), R(UINT64_MAX, UINT64_MAX), R(0, UINT64_MAX)},
		{BPF_ADD, 64, R(0, 1), R(9, UINT64_MAX - 1), R(9, UINT64_MAX)},
		{BPF_ADD, 32, R(UINT32_MAX, UINT32_MAX), R(2, 2), R(1, 1)},
		{BPF_ADD, 32, R(0, 1), R(5, UINT32_MAX - 1), R(5, UINT32_MAX)},
		{BPF_ADD, 32, R(0, 2), R(5, UINT32_MAX - 1), R(0, UINT32_MAX)},
		{BPF_ADD, 32, R(1ull << 32, 1ull << 32), R(0, 0), R(0, UINT32_MAX)},
		{BPF_SUB, 64, R(20, 30), R(1, 20), R(0, 29)},
		{BPF_SUB, 64, R(20, 30), R(1, 21), R(0, UINT64_MAX)},
		{BPF_SUB, 64, R(3, 3), R(4, 4), R(UINT64_MAX, UINT64_MAX)},
		{BPF_SUB, 32, R(3, 3), R(4, 4), R(UINT32_MAX, UINT32_MAX)},
		{BPF_MUL, 64, R(2, 3), R(5, 7), R(10, 21)},
		{BPF_MUL, 64, R(2, 1ull << 63), R(1, 2), R(0, UINT64_MAX)},
		{BPF_AND, 64, R(7, 100), R(3, 15), R(0, 15)},
		{BPF_AND, 64, R(3, 15), R(7, 100), R(0, 15)},
		{BPF_OR, 64, R(4, 9), R(2, 3), R(4, 15)},
		{BPF_OR, 64, R(2, 3), R(4, 9), R(4, 15)},
		{BPF_OR, 64, R(0, 0), R(0, 0), R(0, 0)},
		{BPF_XOR, 64, R(4, 9), R(2, 3), R(0, 15)},
		{BPF_LSH, 64, R(1, 3), R(4, 4), R(16, 48)},
		{BPF_LSH, 64, R(0, 1), R(63, 63), R(0, 1ull << 63)},
		{BPF_LSH, 64, R(0, 1), R(64, 64), R(0, UINT64_MAX)},
		{BPF_LSH, 64, R(0, 2), R(63, 63), R(0, UINT64_MAX)},
		{BPF_LSH, 64, R(1, 3), R(0, 1), R(0, UINT64_MAX)},
		{BPF_LSH, 32, R(0, 1), R(31, 31), R(0, 1ull << 31)},
		{BPF_LSH, 32, R(0, 1), R(32, 32), R(0, UINT32_MAX)},
		{BPF_RSH, 64, R(16, 48), R(4, 4), R(1, 3)},
		{BPF_RSH, 64, R(16, 48), R(63, 63), R(0, 0)},
		{BPF_RSH, 64, R(16, 48), R(64, 64), R(0, 48)},
		{BPF_RSH, 64, R(16, 48), R(3, 4), R(0, 48)},
		{BPF_ARSH, 64, R(16, 48), R(4, 4), R(1, 3)},
		{BPF_ARSH, 64, R(16, INT64_MAX), R(4, 4), R(1, INT64_MAX >> 4)},
		{BPF_ARSH, 64, R(16, 1ull << 63), R(4, 4), R(0, UINT64_MAX)},
		{BPF_ARSH, 32, R(16, INT32_MAX), R(4, 4), R(1, INT32_MAX >> 4)},
		{BPF_ARSH, 32, R(16, 1ull << 31), R(4, 4), R(0, UINT32_MAX)},
		{BPF_DIV, 64, R(7, 100), R(3, 15), R(0, 100)},
		{BPF_MOD, 64, R(7, 100), R(3, 15), R(0, 15)},
		{BPF_MOD, 64, R(7, 10), R(3, 15), R(0, 10)},
		{BPF_NEG, 64, R(7, 7), R(0, 0), R(0, UINT64_MAX)},
		{BPF_NEG, 32, R(7, 7), R(0, 0), R(0, UINT32_MAX)},
	};

	for (unsigned int i = 0; i < sizeof(each) / sizeof(each[0]); i++)
		range_is(range_alu(each[i].op, each[i].bits, each[i].a, each[i].b),
			 each[i].is.min, each[i].is.max);
	range_is(range_bytes(1), 0, 255);
	range_is(range_bytes(4), 0, UINT32_MAX);
	range_is(range_bytes(8), 0, UINT64_MAX);
	range_is(range_union(R(3, 5), R(4, 9)), 3, 9);
	range_is(range_union(R(3, 9), R(2, 5)), 2, 9);
}

static void
a_jump_narrows_to_the_exact_ends_of_each_branch(void **state)
{
	static const struct range none = R(1, 0);
	static const struct {
		uint8_t op;
		/*
		 * A register of range 10 to 20 is compared with `b`. Its range becomes
		 * `taken` if the jump is taken, else `not`.
		 */
		struct range b, taken, not ;
	} each[] = {
		{BPF_JEQ, R(15, 15), R(15, 15), R(10, 20)},
		{BPF_JEQ, R(10, 10), R(10, 10), R(11, 20)},
		{BPF_JEQ, R(20, 20), R(20, 20), R(10, 19)},
		{BPF_JEQ, R(9, 9), none, R(10, 20)},
		{BPF_JEQ, R(21, 21), none, R(10, 20)},
		{BPF_JEQ, R(12, 30), R(12, 20), R(10, 20)},
		{BPF_JEQ, R(10, 20), R(10, 20), R(10, 20)},
		{BPF_JNE, R(10, 10), R(11, 20), R(10, 10)},
		{BPF_JNE, R(20, 20), R(10, 19), R(20, 20)},
		{BPF_JNE, R(15, 15), R(10, 20), R(15, 15)},
		{BPF_JGT, R(10, 10), R(11, 20), R(10, 10)},
		{BPF_JGT, R(9, 9), R(10, 20), none},
		{BPF_JGT, R(20, 20), none, R(10, 20)},
		{BPF_JGT, R(12, 15), R(13, 20), R(10, 15)},
		{BPF_JGT, R(UINT64_MAX, UINT64_MAX), none, R(10, 20)},
		{BPF_JGE, R(10, 10), R(10, 20), none},
		{BPF_JGE, R(11, 11), R(11, 20), R(10, 10)},
		{BPF_JGE, R(20, 20), R(20, 20), R(10, 19)},
		{BPF_JGE, R(21, 21), none, R(10, 20)},
		{BPF_JLT, R(10, 10), none, R(10, 20)},
		{BPF_JLT, R(11, 11), R(10, 10), R(11, 20)},
		{BPF_JLT, R(0, 0), none, R(10, 20)},
		{BPF_JLT, R(12, 15), R(10, 14), R(12, 20)},
		{BPF_JLE, R(9, 9), none, R(10, 20)},
		{BPF_JLE, R(10, 10), R(10, 10), R(11, 20)},
		{BPF_JLE, R(20, 20), R(10, 20), none},
		{BPF_JSGT, R(15, 15), R(16, 20), R(10, 15)},
		{BPF_JSGE, R(15, 15), R(15, 20), R(10, 14)},
		{BPF_JSLT, R(15, 15), R(10, 14), R(15, 20)},
		{BPF_JSLE, R(15, 15), R(10, 15), R(16, 20)},
		/* -1, for a comparison with sign: the range is not narrowed. */
		{BPF_JSGT, R(UINT64_MAX, UINT64_MAX), R(10, 20), R(10, 20)},
		{BPF_JSET, R(15, 15), R(10, 20), R(10, 20)},
	};
	struct range one = R(5, 5), wide = R(0, 1ull << 63);

	for (unsigned int i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
		for (unsigned int taken = 0; taken < 2; taken++) {
			struct range a = R(10, 20);
			const struct range *is = taken ? &each[i].taken : &each[i].not ;
			bool can = is->min <= is->max;

			assert_int_equal(range_jump(each[i].op, taken, &a, each[i].b), can);
			if (can)
				range_is(a, is->min, is->max);
		}
	}
	/* A range of one number. */
	assert_false(range_jump(BPF_JNE, true, &one, R(5, 5)));
	assert_true(range_jump(BPF_JNE, true, &one, R(6, 6)));
	range_is(one, 5, 5);
	/* A register that may be negative is not narrowed by a comparison with sign. */
	assert_true(range_jump(BPF_JSGE, true, &wide, R(3, 3)));
	range_is(wide, 0, 1ull << 63);
	wide = R(0, INT64_MAX);
	assert_true(range_jump(BPF_JSGE, true, &wide, R(3, 3)));
	range_is(wide, 3, INT64_MAX);
	wide = R(0, 9);
	assert_true(range_jump(BPF_JSLE, true, &wide, R(INT64_MAX, INT64_MAX)));
	range_is(wide, 0, 9);
	assert_false(range_jump(BPF_JSGT, true, &wide, R(INT64_MAX, INT64_MAX)));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_part_of_a_word_of_the_stack_is_not_the_word),
		cmocka_unit_test(an_address_that_is_partly_overwritten_is_a_number),
		cmocka_unit_test(only_programs_that_compile_right_are_compiled),
		cmocka_unit_test(a_second_exit_is_right_at_any_distance),
		cmocka_unit_test(the_result_of_an_operation_has_exact_ends),
		cmocka_unit_test(a_jump_narrows_to_the_exact_ends_of_each_branch),
	};

	rte_log_set_global_level(RTE_LOG_EMERG); /* no lines about refused programs */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
