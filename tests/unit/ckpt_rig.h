/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What tests of the checkpoint share: the death of a rig, and damage to what outlives it.
 */
#ifndef CKPT_RIG_H
#define CKPT_RIG_H

#include "rib/checkpoint.h"
#include "rib_rig.h"

#define NETNS 4711

/* Six routes of a session: by ids and a group, of both families, inline, without a way. */
void ckpt_teach(struct rig *g);
/* The rig's death; returns what outlives it, the caller's to close or to begin with. */
int ckpt_of_killed(struct rig *g);
/* The memory behind `fd`, which is good, to be damaged. */
struct ckpt *ckpt_opened(int fd);
/* The n-th route there is in an array, from 1. */
struct ckpt_route *ckpt_nth(struct ckpt *c, unsigned int part, unsigned int n);
/* Flip each octet of a record: it is not believed; of two records: nothing is. */
void ckpt_octets_count(int fd, uint8_t *one, uint8_t *other, size_t bytes);

#endif
