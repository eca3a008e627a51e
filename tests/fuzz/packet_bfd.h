/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * BFD in the burst of fuzz_packet: a session of each family with a peer on the port, and
 * frames of that peer.
 */
#ifndef PACKET_BFD_H
#define PACKET_BFD_H

#include "packet_frames.h"
#include "port/bfd.h"

/* Return the sessions, as a forwarder has them. Each call clears their counts. */
struct bfd_pace *bfd_sessions(uint16_t ifidx);

/*
 * Write a packet of a peer, from its IP header on: the expected packet or another. Return
 * its length in octets.
 */
unsigned int bfd_packet_make(uint8_t *ip, bool is4);

/* Check a frame that thread bfd gets. */
void bfd_handed_over(struct rte_mbuf *m);

/* Note a frame of the burst. Call this for each frame before the burst. */
void bfd_seen(const struct given *g);

/* Check after a burst that no session counts more expected packets than there were. */
void bfd_counted(void);

#endif
