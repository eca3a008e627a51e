/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * logged: packets that matched a rule with the statement `log`. Each thread that judges
 * packets has a ring of copies, and thread filter writes them to the log. If a ring is
 * full, the copy is lost and counted; the packet is not affected.
 */
#ifndef RULESET_LOGGED_H
#define RULESET_LOGGED_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define LOGGED_SLOTS  256u /* of each ring; a power of two */
#define LOGGED_PREFIX 128u /* octets with the terminator: NF_LOG_PREFIXLEN of Linux */
#define LOGGED_OCTETS 96u  /* of a packet, from its IP header on */

/* The statement. Immutable. */
struct ruleset_log {
	uint8_t level;              /* of syslog: 0 (emergency) to 7 (debug) */
	bool has_group;             /* in Linux a program gets the packet (nfnetlink_log) */
	uint16_t group;             /* of nfnetlink_log */
	char prefix[LOGGED_PREFIX]; /* any octets */
};

/* A copy of a packet. */
struct logged {
	struct ruleset_log log;
	char iifname[16], oifname[16];
	uint16_t l3_bytes, octets; /* octets: copied to `ip` */
	uint8_t family;
	bool later; /* a later fragment: no transport header */
	bool has_transport;
	uint8_t l4proto;
	uint32_t transport;        /* offset */
	uint8_t ip[LOGGED_OCTETS]; /* as the rule saw it, but the hop count is one more */
};

struct logged_ring {
	alignas(64) _Atomic uint32_t head; /* W:fwd,punt  packets put in */
	uint64_t n_lost;                   /* W:fwd,punt  packets without room */
	alignas(64) _Atomic uint32_t tail; /* W:filter  packets taken out */
	struct logged slot[LOGGED_SLOTS];
};

struct ruleset_packet;

/* Put a packet into the ring of its thread. [RCU reader] */
void logged_put(struct logged_ring *ring, const struct ruleset_log *log,
		const struct ruleset_packet *p);

/* Take the oldest packet out. Returns false if there is none. [filter] */
bool logged_take(struct logged_ring *ring, struct logged *out);

#endif
