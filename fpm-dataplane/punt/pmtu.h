/* SPDX-License-Identifier: BSD-3-Clause */
/* pmtu: learn the path MTU of outer packets. [punt] */
#ifndef PUNT_PMTU_H
#define PUNT_PMTU_H

#include <rte_mbuf.h>

struct punt;

/*
 * Look at a packet to this host, which keeps it: if it is an ICMP error "too big" about an outer
 * packet of ours, note its MTU.
 */
void punt_pmtu_look(struct punt *p, struct rte_mbuf *m);

/* Forget the path MTUs whose time is over. Once a second. */
void punt_pmtu_expire(struct punt *p);

#endif
