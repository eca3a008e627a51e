/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hop_push: the labels or SRv6 segments that a next hop pushes, as text in one spelling, so
 * that two sources can be compared: "label 300/17", "H.Encaps 2001:db8::1 2001:db8::2".
 */
#ifndef CTL_HOP_PUSH_H
#define CTL_HOP_PUSH_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/srv6_words.h"

struct hop_push {
	size_t len;
	unsigned int n_labels;
	char text[512]; /* "": the next hop pushes nothing */
};

/* Add a label, outermost first. Ignore the implicit null label, which no packet has. */
void push_label(struct hop_push *p, uint32_t label);
/* Add labels in FRR's words, such as "300/implicit-null", up to a comma or line end. */
void push_label_words(struct hop_push *p, const char *words);
/*
 * Set a headend. If forwarders cannot have such a headend, its text does not contain the
 * segments, because the daemon does not keep them.
 *
 * mode      number of linux/seg6_iptunnel.h
 * segments  addresses as text in the order of visits
 * source    of the outer header, as text; NULL: that of the router
 */
void push_headend(struct hop_push *p, uint32_t mode, const char *const *segments,
		  unsigned int n, const char *source);
/* Set a headend that no forwarder can have. */
void push_headend_refused(struct hop_push *p);
/* Set the labels or the headend of a next hop in a row of `show routes`. */
void push_row(struct hop_push *p, const json_t *hop);

/*
 * Set the labels or the headend in RTA_ENCAP or NHA_ENCAP. Returns false if the attribute
 * is malformed.
 *
 * type  RTA_ENCAP_TYPE or NHA_ENCAP_TYPE
 * at    content of the attribute; NULL: there is no such attribute
 */
bool push_kernel(struct hop_push *p, uint16_t type, const uint8_t *at, size_t len);

#endif
