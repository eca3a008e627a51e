/* SPDX-License-Identifier: BSD-3-Clause */
/* pmtu: learn the path MTU of outer packets. [punt] */
#ifndef PUNT_PMTU_H
#define PUNT_PMTU_H

#include <rte_mbuf.h>

struct punt;

/*
 * Check a packet to this host, and leave it unchanged. If it is an ICMP error about an
 * outer packet of ours, store the path MTU, or let the kernel tell the senders of the next
 * packets.
 */
void punt_pmtu_look(struct punt *p, struct rte_mbuf *m);

/* Remove the path MTUs that have expired. Call this once a second. */
void punt_pmtu_expire(struct punt *p);

#endif
