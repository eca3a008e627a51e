/* SPDX-License-Identifier: BSD-3-Clause */
/* Plan the contents of one node before they are written to the pools; see plan.c. */
#ifndef POPTRIE_PLAN_H
#define POPTRIE_PLAN_H

#include "poptrie/node.h"

/* The 64 slots of a node: each has a value or a subtree. */
struct plan {
	uint32_t value[64];  /* of the slot, or of the longest prefix above its subtree */
	uint32_t root[64];   /* radix subtree of the slot, if pt_plan_fill() found one */
	uint64_t kids;       /* slots with a subtree */
	uint64_t bare;       /* see struct node */
	struct node kid[64]; /* nodes of the subtrees, in the order of the slots */
};

/*
 * The value of the longest prefix above a node. `bare`: this prefix is not in the direct
 * slot's own radix tree.
 */
struct above {
	uint32_t value;
	bool bare;
};

void pt_plan_fill(const struct pt_radix *rx, struct plan *p, uint32_t i, unsigned int d);
void pt_plan_open(const struct pt_view *v, struct plan *p, const struct node *old);
void pt_plan_patch(const struct pt_radix *rx, struct plan *p, uint32_t root, unsigned int d,
		   struct above above, const struct pt_dirty *dirty, uint32_t n,
		   uint64_t *whole, uint64_t *part);

#endif
