/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Label stacks of next hops, one record for each different stack. [rib]. A next hop has the
 * number of its stack, so that next hops still are compared octet by octet.
 *
 * The records have no count of references, because next hops are copied in many places.
 * stacks_collect() frees the records that no next hop names any longer.
 */
#ifndef RIB_STACK_H
#define RIB_STACK_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fpm_event.h"
#include "fib/label.h"
#include "rib/index.h"

struct next_hop;
struct rib;

#define STACKS_MAX      (1u << 20)
#define STACK_WORDS_MAX FPM_WORDS_MAX

/* How many labels fit into the record: that of a path, that of a VPN, and explicit null. */
#define STACK_NEAR 3u

/*
 * Each prefix of a VPN may have a label of its own, so there may be as many records as
 * routes. stack_labels() returns the labels.
 */
struct stack {
	union {
		struct {
			uint8_t n;    /* labels; 0: the record is free */
			uint8_t used; /* a next hop names it: only during stacks_collect() */
			uint16_t ttl; /* as in struct fpm_hop */
			uint32_t near[STACK_NEAR];
		};
		struct {
			uint32_t head[2];
			uint32_t *far; /* memory for more than STACK_NEAR labels */
		};
	};
};
static_assert(sizeof(struct stack) == 16, "four records a cache line");

struct rib_stacks {
	struct stack *v; /* by number, from 1 */
	uint32_t high, cap, n;
	uint32_t n_far;      /* labels in memory of their own */
	uint32_t collect_at; /* stacks_collect() runs when n reaches it */
	struct vec32 unused;
	struct hidx by_labels;
};

/*
 * Return the number of a stack of `n` labels, or of the words of an end point or headend.
 * Return 0 if it has no label or too many, or if all numbers are in use. The next hop is
 * unsupported then.
 */
uint32_t stack_number(struct rib *rib, const uint32_t *label, unsigned int n, uint16_t ttl);
/* Set a next hop from a decoded event, with the number of its stack. */
void stack_next_hop(struct rib *rib, struct next_hop *hop, const struct fpm_hop *from);
/* Return a hash of the content, the same after each start. */
uint32_t stack_hash(const struct stack *stack);
const struct stack *stack_at(const struct rib *rib, uint32_t number);
/*
 * Free the stacks that no next hop of an id or of a slot names, if there are many. No list
 * of next hops may be under construction, and the checkpoint must not be quiesced.
 */
void stacks_collect(struct rib *rib);
void stacks_free(struct rib_stacks *stacks);
size_t stacks_bytes(const struct rib_stacks *stacks);

/*
 * Return the labels of a stack: 20 bits each, host order, outermost first; or words of
 * base/srv6_words.h. They are valid until the next stack_number().
 */
static inline const uint32_t *
stack_labels(const struct stack *stack)
{
	return stack->n <= STACK_NEAR ? stack->near : stack->far;
}

/*
 * Return the number of stacks in use at which stacks_collect() frees stacks next, if `n`
 * are in use now. It is twice `n`, but at most halfway between `n` and the largest number,
 * so that it is reached before all numbers are in use. It is larger than `n` if `n` is not
 * 0 and at least two numbers are unused.
 */
static inline uint32_t
stacks_collect_next(uint32_t n)
{
	uint32_t left = STACKS_MAX - 1 - n;

	return n + (left / 2 < n ? left / 2 : n);
}

#endif
