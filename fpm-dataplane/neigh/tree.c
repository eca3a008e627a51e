/* SPDX-License-Identifier: BSD-3-Clause */
/* A balanced search tree, see tree.h. [neigh] */
#include "neigh/tree.h"

#include <stddef.h>

/* Divide a tree into the nodes before `at` and the nodes after it. */
static void
tree_split(struct tree_node *t, const struct tree_node *at, struct tree_node **before,
	   struct tree_node **after, tree_order *order, uint64_t *steps)
{
	while (t != NULL) {
		++*steps;
		if (order(t, at) < 0) {
			*before = t;
			before = &t->right;
			t = t->right;
		} else {
			*after = t;
			after = &t->left;
			t = t->left;
		}
	}
	*before = *after = NULL;
}

void
tree_add(struct tree *t, struct tree_node *node, uint32_t random, tree_order *order,
	 uint64_t *steps)
{
	struct tree_node **to = &t->root;

	node->priority = random;
	while (*to != NULL && (*to)->priority >= random) {
		++*steps;
		to = order(node, *to) < 0 ? &(*to)->left : &(*to)->right;
	}
	tree_split(*to, node, &node->left, &node->right, order, steps);
	*to = node;
}

void
tree_remove(struct tree *t, struct tree_node *node, tree_order *order, uint64_t *steps)
{
	struct tree_node **at = &t->root, *before = node->left, *after = node->right;

	while (*at != node) {
		++*steps;
		at = order(node, *at) < 0 ? &(*at)->left : &(*at)->right;
	}
	while (before != NULL && after != NULL) {
		++*steps;
		if (before->priority >= after->priority) {
			*at = before;
			at = &before->right;
			before = *at;
		} else {
			*at = after;
			at = &after->left;
			after = *at;
		}
	}
	*at = before != NULL ? before : after;
}

struct tree_node *
tree_find(const struct tree *t, const struct tree_node *key, tree_order *order,
	  uint64_t *steps)
{
	struct tree_node *at = t->root;
	int rc;

	while (at != NULL) {
		++*steps;
		rc = order(key, at);
		if (rc == 0)
			break;
		at = rc < 0 ? at->left : at->right;
	}
	return at;
}

struct tree_node *
tree_after(const struct tree *t, const struct tree_node *node, tree_order *order,
	   uint64_t *steps)
{
	struct tree_node *at = t->root, *after = NULL;

	while (at != NULL) {
		++*steps;
		if (node == NULL || order(node, at) < 0) {
			after = at;
			at = at->left;
		} else {
			at = at->right;
		}
	}
	return after;
}
