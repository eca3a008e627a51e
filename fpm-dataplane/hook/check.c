/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check: tests of a program before librte_bpf sees it. They show that the program ends,
 * because all jumps lead forward. The library checks this, too, but is not trusted alone.
 * The library writes its reasons only to the log; the sentences of this file go to the
 * user. Any thread; no state.
 */
#include "hook/check.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arch.h"
#include "base/hook_conf.h"

#define WIDE (BPF_LD | BPF_IMM | BPF_DW) /* takes the place of two instructions */

struct check {
	const struct bpf_insn *ins;
	size_t n;
	char *why;
	size_t why_size;
};

static int
check_fail(const struct check *c, size_t at, const char *text)
{
	snprintf(c->why, c->why_size, "instruction %zu %s", at, text);
	return -EINVAL;
}

static bool
ins_is_jump(const struct bpf_insn *i)
{
	return BPF_CLASS(i->code) == BPF_JMP && BPF_OP(i->code) != BPF_EXIT;
}

static bool
ins_is_exit(const struct bpf_insn *i)
{
	return i->code == (BPF_JMP | BPF_EXIT);
}

/* Return true if this arithmetic operation exists. */
static bool
alu_is_known(uint8_t code)
{
	if (BPF_OP(code) == BPF_END) /* its source bit is the byte order */
		return BPF_CLASS(code) == BPF_ALU;
	if (BPF_OP(code) == BPF_NEG)
		return BPF_SRC(code) == BPF_K;
	return BPF_OP(code) < BPF_END;
}

static bool
jump_is_known(uint8_t code)
{
	uint8_t op = BPF_OP(code);

	if (op == BPF_JA)
		return BPF_SRC(code) == BPF_K;
	return op <= BPF_JSLE && op != BPF_CALL && op != BPF_EXIT;
}

static int
alu_check(const struct check *c, size_t at)
{
	const struct bpf_insn *i = &c->ins[at];
	uint8_t op = BPF_OP(i->code);

	if (!alu_is_known(i->code))
		return check_fail(c, at, "is not known");
	if (i->dst_reg == BPF_REG_10)
		return check_fail(c, at, "changes the frame pointer");
	/* The interpreter logs a division by 0, and a sender could choose the divisor. */
	if ((op == BPF_DIV || op == BPF_MOD) && BPF_SRC(i->code) == BPF_X)
		return check_fail(c, at,
				  "divides by a register; a divisor must be constant");
	if ((op == BPF_DIV || op == BPF_MOD) && i->imm == 0)
		return check_fail(c, at, "divides by 0");
	if (op == BPF_END && i->imm != 16 && i->imm != 32 && i->imm != 64)
		return check_fail(c, at, "swaps neither 16, 32 nor 64 bits");
	return 0;
}

static int
jump_check(const struct check *c, size_t at)
{
	const struct bpf_insn *i = &c->ins[at];

	if (i->code == (BPF_JMP | BPF_CALL))
		return check_fail(c, at,
				  "calls a function; declare it `static inline "
				  "__attribute__((always_inline))`");
	if (ins_is_exit(i))
		return 0; /* the verifier checks that it returns a value */
	if (!jump_is_known(i->code))
		return check_fail(c, at, "is not known");
	if (i->off < 0)
		return check_fail(c, at,
				  "jumps back: a program has no loops; `#pragma unroll` "
				  "removes one");
	if ((size_t)i->off >= c->n - at - 1)
		return check_fail(c, at, "jumps beyond the end");
	return 0;
}

static int
memory_check(const struct check *c, size_t at)
{
	const struct bpf_insn *i = &c->ins[at];
	uint8_t class = BPF_CLASS(i->code);

	/* Each forwarder has memory of its own, so nothing needs to be atomic. */
	if (BPF_MODE(i->code) != BPF_MEM)
		return check_fail(c, at, "is atomic, or not known");
	if (class == BPF_LDX && i->dst_reg == BPF_REG_10)
		return check_fail(c, at, "changes the frame pointer");
	return 0;
}

static int
ins_check(const struct check *c, size_t at)
{
	const struct bpf_insn *i = &c->ins[at];

	if (i->dst_reg > BPF_REG_10 || i->src_reg > BPF_REG_10)
		return check_fail(c, at, "names a register above 10");
	switch (BPF_CLASS(i->code)) {
	case BPF_ALU:
	case BPF_ALU64:
		return alu_check(c, at);
	case BPF_JMP:
		return jump_check(c, at);
	case BPF_LDX:
	case BPF_ST:
	case BPF_STX:
		return memory_check(c, at);
	default:
		break;
	}
	if (i->code != WIDE)
		return check_fail(c, at, "is not known; compile with -mcpu=v2");
	if (at + 1 == c->n || c->ins[at + 1].code != 0)
		return check_fail(c, at, "has no second half");
	if (i->dst_reg == BPF_REG_10)
		return check_fail(c, at, "changes the frame pointer");
	if (i->src_reg != 0)
		return check_fail(c, at, "is the address of a map or a variable");
	return 0;
}

/*
 * Check that no jump leads to the second half of an instruction, and that each path ends.
 */
static int
paths_check(const struct check *c, uint32_t *work)
{
	for (size_t at = c->n; at-- > 0;) {
		const struct bpf_insn *i = &c->ins[at];
		size_t next = at + (i->code == WIDE ? 2 : 1);
		uint64_t sum = 1;

		if (i->code == 0) { /* the second half of the instruction before */
			work[at] = 0;
			continue;
		}
		if (!ins_is_exit(i) && next >= c->n && i->code != (BPF_JMP | BPF_JA))
			return check_fail(c, at,
					  "is the last instruction, but not an exit");
		if (ins_is_jump(i) && c->ins[at + 1 + (size_t)i->off].code == 0)
			return check_fail(c, at, "jumps into the middle of an instruction");
		if (!ins_is_exit(i) && i->code != (BPF_JMP | BPF_JA))
			sum += work[next];
		if (ins_is_jump(i))
			sum += work[at + 1 + (size_t)i->off];
		work[at] = sum > UINT32_MAX ? UINT32_MAX : (uint32_t)sum;
	}
	if (work[0] <= HOOK_WORK_MAX)
		return 0;
	snprintf(c->why, c->why_size,
		 "the program has too many paths from its start to its end to verify them: "
		 "%u instructions; the maximum is %u",
		 work[0], HOOK_WORK_MAX);
	return -EINVAL;
}

int
hook_check(const struct bpf_insn *ins, size_t n, char *why, size_t why_size)
{
	struct check c = {.ins = ins, .n = n, .why = why, .why_size = why_size};
	uint32_t *work;
	int rc = 0;

	if (n == 0 || n > HOOK_INSTRUCTIONS_MAX) {
		snprintf(why, why_size, "a program has 1 to %u instructions, not %zu",
			 HOOK_INSTRUCTIONS_MAX, n);
		return -EINVAL;
	}
	for (size_t at = 0; at < n && rc == 0; at += ins[at].code == WIDE ? 2 : 1)
		rc = ins_check(&c, at);
	if (rc < 0)
		return rc;
	work = calloc(n, sizeof(*work));
	if (work == NULL)
		abort(); /* out of memory for 16 KiB */
	rc = paths_check(&c, work);
	free(work);
	return rc;
}

/* Return true if the compiler of a version of DPDK makes wrong code of the instruction. */
static bool
ins_is_miscompiled(const struct bpf_insn *i)
{
	uint8_t class = BPF_CLASS(i->code), op = BPF_OP(i->code);

	if (i->code == (BPF_JMP | BPF_JSET | BPF_K))
		return i->imm == (int8_t)i->imm;
	return (class == BPF_ALU || class == BPF_ALU64) && BPF_SRC(i->code) == BPF_X &&
	       (op == BPF_LSH || op == BPF_RSH || op == BPF_ARSH) &&
	       i->dst_reg == i->src_reg;
}

bool
hook_compiles(const struct bpf_insn *ins, size_t n)
{
	unsigned int exits = 0;

	if (!ARCH_COMPILES_EBPF)
		return false;
	for (size_t at = 0; at < n; at += ins[at].code == WIDE ? 2 : 1) {
		if (ins_is_miscompiled(&ins[at]))
			return false;
		exits += ins_is_exit(&ins[at]);
	}
	return exits == 1;
}
