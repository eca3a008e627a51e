/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of `show labels` and `show encaps`; dist/openapi.yaml has the keys. [rib] */
#ifndef RIB_LABEL_ROW_H
#define RIB_LABEL_ROW_H

#include <jansson.h>

struct msg_query;
struct rib;

/* Set the number of entries, and the source of outer headers of SRv6, for `show fpm`. */
void encaps_summary(const struct rib *rib, json_t *o);

/* List routes of labels, in the order of the labels, a slice at a time. */
void labels_slice(struct rib *rib, struct msg_query *q);
/* List headends, and label stacks over neighbors and tunnels, a slice at a time. */
void encaps_slice(struct rib *rib, struct msg_query *q);

#endif
