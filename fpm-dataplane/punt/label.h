/* SPDX-License-Identifier: BSD-3-Clause */
/* label: packets with MPLS labels in the punt thread. Private to punt/.           [punt] */
#ifndef PUNT_LABEL_H
#define PUNT_LABEL_H

#include "fib/icmp.h"
#include "fib/label.h"
#include "port/label_write.h"

struct punt;

#define PUNT_LABELS_MAX 16 /* more labels than that: no ICMP error about the packet */

/* The labels that a packet had as it was received. */
struct punt_labels {
	uint8_t entry[PUNT_LABELS_MAX * LABEL_BYTES];
	unsigned int n;
	struct icmp_labels lead; /* where the labels end */
};

/*
 * Look up a frame with labels as the forwarders do. Return N_REASON, and set *lp and *path;
 * or return a drop reason, or PUNT_not_ip.
 */
uint16_t punt_label_resolve(struct punt *p, struct rte_mbuf *m, struct label_packet *lp,
			    fib_path *path);

/*
 * Remove all labels, so that the IP packet behind them follows the Ethernet header. Return
 * false, with the frame unchanged, if there is no IP packet, or the checksum of its header
 * is wrong.
 */
bool punt_labels_take(struct punt *p, struct rte_mbuf *m, struct punt_labels *labels);

/*
 * Put labels before the packet of a frame. `ttl` is the TTL of each label; 0: the labels
 * keep their TTLs. Return false if the buffer has no room.
 */
bool punt_labels_put(struct rte_mbuf *m, const struct punt_labels *labels, uint8_t ttl);

#endif
