/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peers: whom the host speaks with, learned from what it sends. The kernel and FRR know who
 * is a configured peer; that they talk to somebody is the sign of it that a stranger cannot
 * give: what he sends is answered with a refusal or not at all, and refusals teach nothing.
 *
 * One table a kind, so that no kind can crowd out another; sets of four, the longest unused
 * makes room, and what the host merely did not refuse never displaces what it proved. Written
 * by punt, read by forwarders; a word each, never half of one. Keys are hashes under the
 * random seed of this start: nobody outside can make two of them meet.
 */
#ifndef BASE_PEERS_H
#define BASE_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/prefix.h"

enum peer_kind {
	PEER_BGP,     /* TCP connections to or from port 179: peer_tcp_key() */
	PEER_TCP,     /* all other TCP connections */
	PEER_BFD,     /* addresses: peer_addr_key() with what = 0 */
	PEER_CONTROL, /* addresses, `what` the IP protocol, or UDP port << 8 */
	PEER_ASKED,   /* neighbors that the kernel asks for, `what` the ifidx */
	PEER_LINK,    /* MAC addresses behind which peers are: peer_mac_key() */
	N_PEER_KIND
};

/* A peer that the host has not spoken to for so long is a stranger again. */
#define PEER_SECONDS 600

/*
 * Keys. `remote` is always the far end; addresses in network order, 4 or 16 octets. `seed` is
 * that of the VRF (seed_of()), except where an ifidx is in the key.
 */
uint64_t peer_addr_key(const uint8_t *remote, uint8_t family, uint32_t what, uint64_t seed);
uint64_t peer_tcp_key(const uint8_t *remote, const uint8_t *own, uint8_t family,
		      uint16_t remote_port, uint16_t own_port, uint64_t seed);
uint64_t peer_mac_key(const uint8_t mac[6], uint16_t ifidx, uint64_t seed);

/*
 * The host has spoken to this peer now (seconds of any steady clock). `proof`: in a way that
 * it does not speak to strangers; else the peer is kept only while there is room.    [punt]
 */
void peers_learn(enum peer_kind kind, uint64_t key, bool proof, uint32_t now_s);

/* It has ended with this one.                                                   [punt] */
void peers_forget(enum peer_kind kind, uint64_t key);

/* Has it, within PEER_SECONDS?                                           [any thread] */
bool peers_know(enum peer_kind kind, uint64_t key, uint32_t now_s);

#endif
