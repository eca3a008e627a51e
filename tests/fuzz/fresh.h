/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The material of fuzz_fpm_rib's mutator: whole frames, messages, values. Ids, prefixes,
 * gateways and interfaces come from small pools, because only messages that refer to each
 * other reach the interesting code.
 */
#ifndef FRESH_H
#define FRESH_H

#include <stdbool.h>
#include <stddef.h>

#include "../unit/oracle.h"
#include "../unit/test_fpm_build.h"

#define PICK(r, pool) (pool)[rnd_below(r, sizeof(pool) / sizeof((pool)[0]))]

bool once_in(struct rnd *r, uint32_t n);

uint32_t some_id(struct rnd *r);
uint32_t some_group(struct rnd *r);
uint32_t some_oif(struct rnd *r);

/*
 * Write gateway, interface and encapsulation as attributes of a next-hop object or a route.
 */
void put_hop(struct wire *w, struct rnd *r, bool is_object);
/* Write one message, or two messages that refer to each other. */
void put_fresh_message(struct wire *w, struct rnd *r);
void put_control(struct wire *w, struct rnd *r); /* a frame of control.h */
void put_fresh(struct wire *w, struct rnd *r);   /* a frame of either kind */

#endif
