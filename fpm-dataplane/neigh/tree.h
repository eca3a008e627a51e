/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tree: a balanced search tree of nodes that are in the caller's records (a treap: Seidel
 * and Aragon, "Randomized search trees"). A walk from the root to a node has about 2
 * log2(n) steps. [neigh]
 */
#ifndef NEIGH_TREE_H
#define NEIGH_TREE_H

#include <stdint.h>

struct tree_node {
	struct tree_node *left, *right;
	uint32_t priority; /* at least the priority of each node below */
};

/*
 * Return a negative value if `a` is before `b`, 0 if they are equal, or a positive value.
 */
typedef int tree_order(const struct tree_node *a, const struct tree_node *b);

struct tree {
	struct tree_node *root;
};

/*
 * Functions that search add the number of nodes that they pass to *steps. All calls for a
 * tree must pass the same `order`.
 */

/* Add a node that is not equal to another node. `random` balances the tree. */
void tree_add(struct tree *t, struct tree_node *node, uint32_t random, tree_order *order,
	      uint64_t *steps);
/* Remove a node of the tree. */
void tree_remove(struct tree *t, struct tree_node *node, tree_order *order,
		 uint64_t *steps);
/* Return the node that is equal to `key`, or NULL. */
struct tree_node *tree_find(const struct tree *t, const struct tree_node *key,
			    tree_order *order, uint64_t *steps);
/* Return the first node after `node` (NULL: the first of all). NULL: there is none. */
struct tree_node *tree_after(const struct tree *t, const struct tree_node *node,
			     tree_order *order, uint64_t *steps);

#endif
