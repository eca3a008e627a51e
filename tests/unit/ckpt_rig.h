/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Helpers for tests of the checkpoint: the end of a rig, and damage to its checkpoint.
 */
#ifndef CKPT_RIG_H
#define CKPT_RIG_H

#include "rib/checkpoint.h"
#include "rib_rig.h"

#define NETNS 4711

/*
 * Send six routes of both families in a session: with ids, with a group, with an inline
 * next hop, without a next hop. The sixth route is the sentinel.
 */
void ckpt_teach(struct rig *g);
/*
 * Free the rig as if its daemon had died. Return the descriptor of its checkpoint; the
 * caller closes it or starts a rig with it.
 */
int ckpt_of_killed(struct rig *g);
/* Open a good checkpoint so that the test can damage it. */
struct ckpt *ckpt_opened(int fd);
/* Return the n-th existing route of an array, counting from 1. */
struct ckpt_route *ckpt_nth(struct ckpt *c, unsigned int part, unsigned int n);
/*
 * Damage each octet of the records `one` and `other` in turn. Assert that one damaged
 * record is skipped, and that two damaged records make the checkpoint invalid.
 */
void ckpt_octets_count(int fd, uint8_t *one, uint8_t *other, size_t bytes);

#endif
