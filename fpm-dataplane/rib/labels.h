/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of MPLS labels that forwarders read, fib->label. [rib]. Routes of labels are
 * kept like IP routes; they differ only in the table in which forwarders find their group.
 */
#ifndef RIB_LABELS_H
#define RIB_LABELS_H

#include <stdbool.h>
#include <stdint.h>

#include "rib/index.h"

struct rib;
struct route;

struct rib_labels {
	uint32_t *want; /* by label: the group after the next commit; NULL: no label yet */
	struct vec32 staged; /* labels that changed */
};

/* Stage the group of a label's route for the next commit. */
void label_stage(struct rib *rib, const struct route *r);
/* Return true if forwarders get the route's group with the next commit, or have it. */
bool label_is_staged(const struct rib *rib, const struct route *r);
/*
 * Return the first label from `label` on, below `end`, for which forwarders have a wrong
 * group; `end`: none. Valid between commits.
 */
uint32_t labels_next_wrong(const struct rib *rib, uint32_t label, uint32_t end);
/* Publish the group of a label again with the next commit. */
void label_stage_again(struct rib *rib, uint32_t label);
/* Publish the staged groups. Their words must have been published. */
void labels_commit(struct rib *rib);
void labels_free(struct rib *rib);

#endif
