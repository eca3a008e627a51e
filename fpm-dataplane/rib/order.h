/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RIB_ORDER_H
#define RIB_ORDER_H

#include <stdint.h>

/*
 * Sort words by their upper 32 bits, a key; those with the same key stay in the order that
 * they had.                                                              [any thread]
 *
 * word   `n` of them; overwritten.
 * spare  room for as many.
 *
 * Returns the one of the two in which the sorted words are.
 */
uint64_t *order_by_key(uint64_t *word, uint64_t *spare, uint32_t n);

#endif
