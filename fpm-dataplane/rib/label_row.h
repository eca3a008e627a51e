/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of `show labels` and `show encaps`; dist/openapi.yaml has the keys. [rib] */
#ifndef RIB_LABEL_ROW_H
#define RIB_LABEL_ROW_H

#include <jansson.h>

struct msg_query;
struct next_hop;
struct rib;

/* Add what a next hop does with a packet besides sending it: its labels, or SRv6. */
void hop_add_encap(json_t *row, const struct rib *rib, const struct next_hop *hop);
/* Return the labels that a next hop pushes; an empty array: it pops a label. */
json_t *hop_labels_json(const struct rib *rib, const struct next_hop *hop);

/* Set the number of entries, and the source of outer headers of SRv6, for `show fpm`. */
void encaps_summary(const struct rib *rib, json_t *o);

/* List routes of labels, in the order of the labels, a slice at a time. */
void labels_slice(struct rib *rib, struct msg_query *q);
/* List label stacks over neighbors, a slice at a time. */
void encaps_slice(struct rib *rib, struct msg_query *q);

#endif
