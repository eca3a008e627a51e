/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * range: the values that a register of a program may have, as a range of unsigned numbers,
 * and the results of operations on ranges. A result has all values that are possible, and
 * may have more. Pure functions.
 *
 * Private to hook/.
 */
#ifndef HOOK_RANGE_H
#define HOOK_RANGE_H

#include <stdbool.h>
#include <stdint.h>

struct range {
	uint64_t min, max;
};

#define RANGE_ALL ((struct range){0, UINT64_MAX})

static inline struct range
range_of(uint64_t value)
{
	return (struct range){value, value};
}

static inline bool
range_is_one(struct range r)
{
	return r.min == r.max;
}

/* Return the range of values of `bytes` octets. */
static inline struct range
range_bytes(unsigned int bytes)
{
	return (struct range){0, bytes >= 8 ? UINT64_MAX : (1ull << 8 * bytes) - 1};
}

/* Return the smallest range that contains both ranges. */
static inline struct range
range_union(struct range a, struct range b)
{
	return (struct range){a.min < b.min ? a.min : b.min, a.max > b.max ? a.max : b.max};
}

/*
 * Return the result of an operation (BPF_ADD, ..., not BPF_MOV) on numbers of `bits` bits,
 * 32 or 64. With 32 only the low 32 bits of the operands and of the result count.
 */
struct range range_alu(uint8_t op, unsigned int bits, struct range a, struct range b);

/*
 * Narrow *a by a jump (BPF_JEQ, ...) that compares *a with `b`. If `taken` is true, keep
 * the values with which the jump is taken, else the values with which it is not taken.
 * Return false if no value remains.
 */
bool range_jump(uint8_t op, bool taken, struct range *a, struct range b);

#endif
