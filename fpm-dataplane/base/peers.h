/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peers: the remote hosts that this host communicates with, learned from the frames that
 * the kernel sends. The kernel and FRR know which hosts are configured peers. Traffic that
 * the host sends shows that the remote host is a peer, and an attacker cannot forge it:
 * the host answers unknown senders with RST or ICMP errors, or not at all, and those are
 * not learned.
 *
 * Each kind has a table of its own, so that no kind can displace entries of another. A
 * table has sets of four words. A new peer replaces the word that was not used for the
 * longest time. An unproved peer, which the host merely did not refuse, never replaces a
 * proved peer. punt writes, forwarders read; each entry is one atomic word. Keys are hashes
 * under the random seed of this start, so that a remote host cannot construct collisions.
 */
#ifndef BASE_PEERS_H
#define BASE_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/prefix.h"

enum peer_kind {
	PEER_BGP,     /* TCP connections to or from port 179: peer_tcp_key() */
	PEER_TCP,     /* all other TCP connections */
	PEER_BFD,     /* addresses: peer_addr_key(); `what` is 0 */
	PEER_CONTROL, /* addresses; `what` is the IP protocol, or the UDP port << 8 */
	PEER_ASKED,   /* neighbors that the kernel resolves; `what` is the ifidx */
	PEER_LINK,    /* MAC addresses of peers and of gateways to peers: peer_mac_key() */
	N_PEER_KIND
};

/* An entry expires after this many seconds without traffic from the host to the peer. */
#define PEER_SECONDS 600

/*
 * Keys. `remote` is always the far end; addresses are in network order, 4 or 16 octets.
 * `seed` is the seed of the VRF (seed_of()); if an ifidx is in the key, it is fib->seed.
 */
uint64_t peer_addr_key(const uint8_t *remote, uint8_t family, uint32_t what, uint64_t seed);
uint64_t peer_tcp_key(const uint8_t *remote, const uint8_t *own, uint8_t family,
		      uint16_t remote_port, uint16_t own_port, uint64_t seed);
uint64_t peer_mac_key(const uint8_t mac[6], uint16_t ifidx, uint64_t seed);

/*
 * Record that the host has sent to this peer now (seconds of any steady clock). `proof`:
 * the traffic is of a kind that the host sends to peers only; otherwise the entry is kept
 * only while the set has room.                                                      [punt]
 */
void peers_learn(enum peer_kind kind, uint64_t key, bool proof, uint32_t now_s);

/* Remove the entry of a peer: the host has ended the session.                    [punt] */
void peers_forget(enum peer_kind kind, uint64_t key);

/* Return true if the host has sent to this peer within PEER_SECONDS.       [any thread] */
bool peers_know(enum peer_kind kind, uint64_t key, uint32_t now_s);

#endif
