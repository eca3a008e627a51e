/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RIB_ORDER_H
#define RIB_ORDER_H

#include <stdint.h>

/*
 * Sort words by their upper 32 bits, the key. Words with equal keys keep their order.
 *                                                                             [any thread]
 *
 * word   `n` words; overwritten.
 * spare  room for `n` words.
 *
 * Return `word` or `spare`: the array that has the sorted words.
 */
uint64_t *order_by_key(uint64_t *word, uint64_t *spare, uint32_t n);

#endif
