/* SPDX-License-Identifier: BSD-3-Clause */
/* range: arithmetic of ranges. Any thread; no state. */
#include "hook/range.h"

#include <linux/bpf.h>

/* Return the range of the low 32 bits of the values. */
static struct range
range_cut(struct range r)
{
	return r.max <= UINT32_MAX ? r : range_bytes(4);
}

static struct range
range_add(struct range a, struct range b)
{
	struct range sum;

	if (range_is_one(a) && range_is_one(b))
		return range_of(a.min + b.min);
	if (__builtin_add_overflow(a.max, b.max, &sum.max))
		return RANGE_ALL;
	sum.min = a.min + b.min;
	return sum;
}

static struct range
range_sub(struct range a, struct range b)
{
	if (range_is_one(a) && range_is_one(b))
		return range_of(a.min - b.min);
	if (a.min < b.max)
		return RANGE_ALL;
	return (struct range){a.min - b.max, a.max - b.min};
}

static struct range
range_mul(struct range a, struct range b)
{
	struct range product;

	if (__builtin_mul_overflow(a.max, b.max, &product.max))
		return RANGE_ALL;
	product.min = a.min * b.min;
	return product;
}

/* Return the largest number with as many bits as `x`. */
static uint64_t
bits_filled(uint64_t x)
{
	return x == 0 ? 0 : UINT64_MAX >> __builtin_clzll(x);
}

/*
 * Shift left. Any result is possible if the distance is not known, is at least `bits`, or
 * shifts the largest value beyond 64 bits.
 */
static struct range
range_left(struct range a, struct range b, unsigned int bits)
{
	if (!range_is_one(b) || b.min >= bits || a.max > UINT64_MAX >> b.min)
		return RANGE_ALL;
	return (struct range){a.min << b.min, a.max << b.min};
}

static struct range
range_right(struct range a, struct range b, unsigned int bits)
{
	if (!range_is_one(b) || b.min >= bits)
		return (struct range){0, a.max}; /* no distance gives a larger result */
	return (struct range){a.min >> b.min, a.max >> b.min};
}

struct range
range_alu(uint8_t op, unsigned int bits, struct range a, struct range b)
{
	struct range r = RANGE_ALL;

	if (bits == 32) {
		a = range_cut(a);
		b = range_cut(b);
	}
	switch (op) {
	case BPF_ADD:
		r = range_add(a, b);
		break;
	case BPF_SUB:
		r = range_sub(a, b);
		break;
	case BPF_MUL:
		r = range_mul(a, b);
		break;
	case BPF_AND:
		r = (struct range){0, a.max < b.max ? a.max : b.max};
		break;
	case BPF_OR:
		r = (struct range){a.min > b.min ? a.min : b.min,
				   bits_filled(a.max | b.max)};
		break;
	case BPF_XOR:
		r = (struct range){0, bits_filled(a.max | b.max)};
		break;
	case BPF_LSH:
		r = range_left(a, b, bits);
		break;
	case BPF_RSH:
		r = range_right(a, b, bits);
		break;
	case BPF_ARSH:
		/* This shift equals BPF_RSH if no value of `a` is negative. */
		if (a.max <= (bits == 32 ? (uint64_t)INT32_MAX : (uint64_t)INT64_MAX))
			r = range_right(a, b, bits);
		break;
	case BPF_DIV:
		r = (struct range){0, a.max};
		break;
	case BPF_MOD:
		r = (struct range){0, a.max < b.max ? a.max : b.max};
		break;
	default: /* BPF_NEG */
		break;
	}
	/* A constant outside of 32 bits wraps: the result has its low 32 bits. */
	if (bits == 32 && range_is_one(r))
		return range_of((uint32_t)r.min);
	return bits == 32 ? range_cut(r) : r;
}

/*
 * Remove `value` from a range if it is the first or the last value of the range. Return
 * false if no value remains.
 */
static bool
range_without(struct range *a, uint64_t value)
{
	if (range_is_one(*a))
		return a->min != value;
	if (a->min == value)
		a->min++;
	else if (a->max == value)
		a->max--;
	return true;
}

static bool
range_at_least(struct range *a, uint64_t value)
{
	if (a->min < value)
		a->min = value;
	return a->min <= a->max;
}

static bool
range_at_most(struct range *a, uint64_t value)
{
	if (a->max > value)
		a->max = value;
	return a->min <= a->max;
}

/* Return the unsigned form of a comparison if no value of `a` and `b` is negative. */
static uint8_t
jump_unsigned(uint8_t op, struct range a, struct range b)
{
	bool plain = a.max <= INT64_MAX && b.max <= INT64_MAX;

	switch (op) {
	case BPF_JSGT:
		return plain ? BPF_JGT : BPF_JSGT;
	case BPF_JSGE:
		return plain ? BPF_JGE : BPF_JSGE;
	case BPF_JSLT:
		return plain ? BPF_JLT : BPF_JSLT;
	case BPF_JSLE:
		return plain ? BPF_JLE : BPF_JSLE;
	default:
		return op;
	}
}

/* Return the operation that jumps when `op` does not. */
static uint8_t
jump_opposite(uint8_t op)
{
	static const uint8_t of[16] = {
		[BPF_JEQ >> 4] = BPF_JNE, [BPF_JNE >> 4] = BPF_JEQ,
		[BPF_JGT >> 4] = BPF_JLE, [BPF_JLE >> 4] = BPF_JGT,
		[BPF_JGE >> 4] = BPF_JLT, [BPF_JLT >> 4] = BPF_JGE,
	};

	return of[op >> 4]; /* 0: BPF_JSET and others, which narrow nothing */
}

bool
range_jump(uint8_t op, bool taken, struct range *a, struct range b)
{
	op = jump_unsigned(op, *a, b);
	if (!taken)
		op = jump_opposite(op);
	switch (op) {
	case BPF_JEQ:
		return range_at_least(a, b.min) && range_at_most(a, b.max);
	case BPF_JNE:
		return !range_is_one(b) || range_without(a, b.min);
	case BPF_JGT:
		return b.min < UINT64_MAX && range_at_least(a, b.min + 1);
	case BPF_JGE:
		return range_at_least(a, b.min);
	case BPF_JLT:
		return b.max > 0 && range_at_most(a, b.max - 1);
	case BPF_JLE:
		return range_at_most(a, b.max);
	default:
		return true;
	}
}
