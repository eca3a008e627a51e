/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The labels and the SRv6 action of a next hop, for rows of the ui. dist/openapi.yaml has
 * the keys.                                                                         [rib]
 */
#ifndef RIB_ENCAP_ROW_H
#define RIB_ENCAP_ROW_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/msg.h"
#include "base/srv6_words.h"

struct next_hop;
struct rib;

/* Room for the name of an end point or headend, its segments, and its source. */
#define SRV6_TEXT_BYTES (64 + (SRV6_SEGMENTS_MAX + 1) * PREFIX_STRLEN)

/* Add the labels or the SRv6 action of a next hop. */
void hop_add_encap(json_t *row, const struct rib *rib, const struct next_hop *hop);
/* Add the TTL of pushed labels, if a route of the kernel gives it. */
void row_add_label_ttl(json_t *row, uint16_t ttl);
/*
 * Write the segments of a headend in the order of visits, and its own source address, if
 * any. Returns false if the words are no headend.
 */
bool headend_text(const uint32_t *word, unsigned int n_words, char *text, size_t size);

#endif
