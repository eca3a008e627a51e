/* SPDX-License-Identifier: BSD-3-Clause */
/* hops_text: next hops as text in one spelling, so that two sources can be compared. */
#ifndef CTL_HOPS_TEXT_H
#define CTL_HOPS_TEXT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The next hops of a route in one spelling, sorted: "via 10.0.1.2 dev wan0 weight 1", with
 * labels "via 10.0.1.2 dev wan0 label 300 weight 1". A next hop that the kernel has marked
 * as dead ends with " dead".
 */
struct hops_text {
	unsigned int n, cap;
	uint32_t mtu_bytes; /* of the route; 0: none */
	char **hop;
};
void hops_reset(struct hops_text *w);
/* Add a next hop. `push`: what it pushes, as text of hop_push.h; NULL or "": nothing. */
void hops_add(struct hops_text *w, const char *via, const char *dev, const char *push,
	      long long weight);
void hops_mark_dead(struct hops_text *w); /* the next hop that was added last */
void hops_drop_dead(struct hops_text *w); /* remove these marks */
void hops_add_kind(struct hops_text *w, const char *kind); /* "blackhole", ... */
/*
 * Set the MTU of a route of the family. The dataplane raises it to the minimum of the
 * family, and ignores an MTU that limits nothing.
 */
void hops_set_mtu(struct hops_text *w, bool ip6, uint32_t mtu_bytes);
/*
 * Join all next hops with "; ", and add ", mtu 1400" if the route has an MTU. The caller
 * frees the text. NULL: there are no next hops.
 */
char *hops_join(struct hops_text *w);
/* Remove labels and segments from next hops without a gateway: AS_COPY6, audit_table.h. */
void hops_drop_bare_push(struct hops_text *w);
void hops_free(struct hops_text *w);

/* The hash of next hops that a side has not decided about; no text has this hash. */
#define HOPS_UNDECIDED 0

uint64_t text_hash(const char *text);
/* Return the hash of a text of next hops. It is never HOPS_UNDECIDED. */
uint64_t hops_hash(const char *text);

#endif
