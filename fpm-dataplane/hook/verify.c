/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verify: a second verifier in addition to that of DPDK, whose versions have had errors. It
 * goes once through the instructions, in their order, with the values that each register
 * and each word of the stack may have. It may refuse a program because of a path that is
 * impossible, but it overlooks no possible path: for an operation that this file does not
 * know exactly, it assumes any result. Any thread; no state.
 */
#include "hook/verify.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fpm_hook.h"
#include "hook/range.h"

#define WIDE        (BPF_LD | BPF_IMM | BPF_DW) /* takes the place of two instructions */
#define N_REGISTER  11
#define STACK_BYTES 512
#define WORD_BYTES  8
/* Octets. No register points further than this from the start of its memory. */
#define FAR (1 << 20)

enum kind {
	NOTHING,  /* no value, or different kinds of values on different paths */
	NUMBER,   /* `range` */
	ARGUMENT, /* an address `low` to `high` octets above the start of struct fpm_hook */
	/* an address `low` to `high` octets above the end of the stack; < 0: below */
	STACK,
};

struct value {
	enum kind kind;
	struct range range;
	int low, high;
};

/* The values before an instruction. */
struct state {
	struct value reg[N_REGISTER];
	struct value word[STACK_BYTES / WORD_BYTES]; /* from the lowest address on */
	bool written[STACK_BYTES];                   /* octets written on every path */
};

/* The values of all jumps to an instruction, so far. */
struct later {
	bool is_reached;
	struct state state;
};

struct verify {
	const struct bpf_insn *ins;
	size_t n, at;
	struct state now;
	bool reached;        /* `now` is valid: a path leads here */
	struct later *later; /* by instruction */
	char *why;
	size_t why_size;
};

static int
verify_fail(struct verify *v, const char *text)
{
	snprintf(v->why, v->why_size, "instruction %zu %s", v->at, text);
	return -EINVAL;
}

static struct value
value_number(struct range range)
{
	return (struct value){.kind = NUMBER, .range = range};
}

/* --- where paths meet ----------------------------------------------------------------- */

static struct value
value_meet(struct value a, struct value b)
{
	if (a.kind != b.kind)
		return (struct value){.kind = NOTHING};
	a.range = range_union(a.range, b.range);
	a.low = a.low < b.low ? a.low : b.low;
	a.high = a.high > b.high ? a.high : b.high;
	return a;
}

static void
state_meet(struct state *a, const struct state *b)
{
	for (unsigned int i = 0; i < N_REGISTER; i++)
		a->reg[i] = value_meet(a->reg[i], b->reg[i]);
	for (unsigned int i = 0; i < STACK_BYTES / WORD_BYTES; i++)
		a->word[i] = value_meet(a->word[i], b->word[i]);
	for (unsigned int i = 0; i < STACK_BYTES; i++)
		a->written[i] &= b->written[i];
}

/* Record a path from here to the later instruction `to`. */
static void
path_add(struct verify *v, size_t to, const struct state *state)
{
	struct later *later = &v->later[to];

	if (later->is_reached)
		state_meet(&later->state, state);
	else
		later->state = *state;
	later->is_reached = true;
}

/* Begin an instruction: merge the values of the path before it and of all jumps to it. */
static void
paths_take(struct verify *v)
{
	const struct later *jumps = &v->later[v->at];

	if (!jumps->is_reached)
		return;
	if (v->reached)
		state_meet(&v->now, &jumps->state);
	else
		v->now = jumps->state;
	v->reached = true;
}

/* --- arithmetic ----------------------------------------------------------------------- */

/* Return the second operand. A constant of 32 bits is extended with its sign to 64 bits. */
static struct value
insn_operand(const struct verify *v, const struct bpf_insn *i)
{
	if (BPF_SRC(i->code) == BPF_X)
		return v->now.reg[i->src_reg];
	return value_number(range_of((uint64_t)(int64_t)i->imm));
}

/* Add a number to an address, or subtract it (`minus`). False: the sum is out of range. */
static bool
address_move(struct value *address, struct range by, bool minus)
{
	int64_t low = (int64_t)by.min, high = (int64_t)by.max;

	if (low > high || low < -FAR || high > FAR)
		return false;
	address->low += (int)(minus ? -high : low);
	address->high += (int)(minus ? -low : high);
	return address->low >= -FAR && address->high <= FAR;
}

/* Arithmetic with an address: only sums and differences with numbers. */
static int
address_alu(struct verify *v, const struct bpf_insn *i, struct value a, struct value b)
{
	struct value *to = &v->now.reg[i->dst_reg];
	uint8_t op = BPF_OP(i->code);
	struct value sum = a.kind == NUMBER ? b : a;
	struct range by = a.kind == NUMBER ? a.range : b.range;

	if (BPF_CLASS(i->code) != BPF_ALU64 || (op != BPF_ADD && op != BPF_SUB) ||
	    (a.kind != NUMBER && b.kind != NUMBER) || (op == BPF_SUB && a.kind == NUMBER))
		return verify_fail(v, "calculates with an address");
	if (!address_move(&sum, by, op == BPF_SUB))
		return verify_fail(v, "moves an address by a number without a bound");
	*to = sum;
	return 0;
}

static int
alu_verify(struct verify *v, const struct bpf_insn *i)
{
	struct value *to = &v->now.reg[i->dst_reg], a = *to, b = insn_operand(v, i);
	unsigned int bits = BPF_CLASS(i->code) == BPF_ALU ? 32 : 64;
	uint8_t op = BPF_OP(i->code);

	if (op == BPF_NEG || op == BPF_END)
		b = value_number(RANGE_ALL);
	if (b.kind == NOTHING || (op != BPF_MOV && a.kind == NOTHING))
		return verify_fail(v, "reads a register that has no value");
	if ((op == BPF_LSH || op == BPF_RSH || op == BPF_ARSH) &&
	    BPF_SRC(i->code) == BPF_K && (i->imm < 0 || (unsigned int)i->imm >= bits))
		return verify_fail(v, "shifts by more bits than there are");
	if (op == BPF_MOV && (bits == 64 || b.kind == NUMBER)) {
		*to = b;
		if (bits == 32)
			to->range = range_alu(BPF_ADD, 32, b.range, range_of(0));
		return 0;
	}
	if (op == BPF_MOV || a.kind != NUMBER || b.kind != NUMBER)
		return address_alu(v, i, a, b);
	*to = value_number(op == BPF_END ? range_bytes((unsigned int)i->imm / 8)
					 : range_alu(op, bits, a.range, b.range));
	return 0;
}

/* --- memory --------------------------------------------------------------------------- */

static unsigned int
access_bytes(uint8_t code)
{
	switch (BPF_SIZE(code)) {
	case BPF_B:
		return 1;
	case BPF_H:
		return 2;
	case BPF_W:
		return 4;
	default:
		return 8;
	}
}

/* Check that `bytes` octets at `address` + `off` are in the memory of the address. */
static int
access_check(struct verify *v, struct value address, int off, unsigned int bytes)
{
	int low = address.low + off, end = address.high + off + (int)bytes;

	if (address.kind == NOTHING)
		return verify_fail(v, "reads a register that has no value");
	if (address.kind == NUMBER)
		return verify_fail(v, "takes a number for an address");
	if (address.kind == ARGUMENT && (low < 0 || end > (int)sizeof(struct fpm_hook)))
		return verify_fail(v, "may reach beyond struct fpm_hook");
	if (address.kind == STACK && (low < -STACK_BYTES || end > 0))
		return verify_fail(v, "may reach beyond the stack");
	return 0;
}

/*
 * Write a value of `bytes` octets to the stack. It lies somewhere in the octets `low` to
 * `end` - 1, counted from the lowest address of the stack.
 */
static void
stack_write(struct state *s, int low, int end, unsigned int bytes, struct value value)
{
	bool exact = end - low == (int)bytes;

	for (int k = low / WORD_BYTES; k <= (end - 1) / WORD_BYTES; k++)
		s->word[k] = value_number(RANGE_ALL);
	if (exact && bytes == WORD_BYTES && low % WORD_BYTES == 0)
		s->word[low / WORD_BYTES] = value;
	for (int k = low; exact && k < end; k++)
		s->written[k] = true;
}

static int
store_verify(struct verify *v, const struct bpf_insn *i)
{
	struct value address = v->now.reg[i->dst_reg];
	unsigned int bytes = access_bytes(i->code);
	struct value value = BPF_CLASS(i->code) == BPF_STX ? v->now.reg[i->src_reg]
							   : value_number(RANGE_ALL);

	if (value.kind == NOTHING)
		return verify_fail(v, "reads a register that has no value");
	if (access_check(v, address, i->off, bytes) < 0)
		return -EINVAL;
	if (address.kind == STACK)
		stack_write(&v->now, STACK_BYTES + address.low + i->off,
			    STACK_BYTES + address.high + i->off + (int)bytes, bytes, value);
	else if (value.kind != NUMBER)
		return verify_fail(v, "gives an address away");
	return 0;
}

static int
load_verify(struct verify *v, const struct bpf_insn *i)
{
	struct value address = v->now.reg[i->src_reg], *to = &v->now.reg[i->dst_reg];
	unsigned int bytes = access_bytes(i->code);
	int low = STACK_BYTES + address.low + i->off;
	int end = STACK_BYTES + address.high + i->off + (int)bytes;

	if (access_check(v, address, i->off, bytes) < 0)
		return -EINVAL;
	*to = value_number(range_bytes(bytes));
	if (address.kind != STACK)
		return 0;
	for (int k = low; k < end; k++)
		if (!v->now.written[k])
			return verify_fail(v,
					   "reads a part of the stack that has no value");
	/*
	 * A part of a stored address counts as a number, and so does the result of a load
	 * that may be from several places.
	 */
	if (address.low == address.high && bytes == WORD_BYTES && low % WORD_BYTES == 0)
		*to = v->now.word[low / WORD_BYTES];
	return to->kind == NOTHING ? verify_fail(v, "reads different kinds of values") : 0;
}

/* --- jumps ---------------------------------------------------------------------------- */

/* Narrow a register to the values of one path. Return false if the path is impossible. */
static bool
branch_narrow(struct state *s, const struct bpf_insn *i, struct value b, bool taken)
{
	struct value *a = &s->reg[i->dst_reg];

	return a->kind != NUMBER || b.kind != NUMBER ||
	       range_jump(BPF_OP(i->code), taken, &a->range, b.range);
}

static int
jump_verify(struct verify *v, const struct bpf_insn *i)
{
	struct state taken = v->now;
	size_t to = v->at + 1 + (size_t)i->off;
	struct value b;

	if (BPF_OP(i->code) == BPF_EXIT) {
		v->reached = false;
		return v->now.reg[BPF_REG_0].kind == NUMBER
			       ? 0
			       : verify_fail(v, "returns no number");
	}
	if (BPF_OP(i->code) == BPF_JA) {
		path_add(v, to, &v->now);
		v->reached = false;
		return 0;
	}
	b = insn_operand(v, i);
	if (v->now.reg[i->dst_reg].kind == NOTHING || b.kind == NOTHING)
		return verify_fail(v, "reads a register that has no value");
	if (branch_narrow(&taken, i, b, true))
		path_add(v, to, &taken);
	v->reached = branch_narrow(&v->now, i, b, false);
	return 0;
}

static int
instruction_verify(struct verify *v)
{
	const struct bpf_insn *i = &v->ins[v->at];

	switch (BPF_CLASS(i->code)) {
	case BPF_ALU:
	case BPF_ALU64:
		return alu_verify(v, i);
	case BPF_JMP:
		return jump_verify(v, i);
	case BPF_LDX:
		return load_verify(v, i);
	case BPF_ST:
	case BPF_STX:
		return store_verify(v, i);
	default: /* WIDE */
		v->now.reg[i->dst_reg] = value_number(
			range_of((uint32_t)i->imm | (uint64_t)(uint32_t)i[1].imm << 32));
		return 0;
	}
}

int
hook_verify(const struct bpf_insn *ins, size_t n, char *why, size_t why_size)
{
	struct verify v = {
		.ins = ins, .n = n, .reached = true, .why = why, .why_size = why_size};
	int rc = 0;

	v.now.reg[BPF_REG_1].kind = ARGUMENT;
	v.now.reg[BPF_REG_10].kind = STACK;
	v.later = calloc(n, sizeof(*v.later));
	if (v.later == NULL)
		/* out of memory for 12 MiB at most, of which only jumps use pages */
		abort();
	for (; v.at < n && rc == 0; v.at += ins[v.at].code == WIDE ? 2 : 1) {
		paths_take(&v);
		if (v.reached)
			rc = instruction_verify(&v);
	}
	free(v.later);
	return rc;
}
