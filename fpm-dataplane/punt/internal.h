/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the punt thread share. Everything here is [punt]. */
#ifndef PUNT_INTERNAL_H
#define PUNT_INTERNAL_H

#include <ev.h>
#include <rte_mbuf.h>

#include "base/counters.h"
#include "base/msg.h"
#include "fib/fib.h"
#include "port/port.h"
#include "punt/punt.h"

#define L2_LEN    14
#define TAP_BURST 64
/*
 * The next hop of a route that changes is resolved within the millisecond, but on a busy
 * machine neigh may be late by ten: enough for a few thousand packets a second.
 */
#define HOLD_PER_NEIGHBOR 64
/*
 * When there is no room, the oldest entry that had so long for an answer makes it: a host that
 * is there answers within milliseconds, so it is found while a scan asks for 3000 a second that are
 * not. Next hops are never pushed out, and have a sixth as many places to themselves.
 */
#define HOLD_AT_LEAST 0.25 /* seconds */
#define HOLD_AGAIN    10   /* answers in vain, as many as `ip neigh flush` has rounds */
#define HOLD_SECONDS  10   /* nobody waits longer, whatever neigh says */

struct held {
	uint16_t ifidx;
	uint8_t family; /* of the neighbor; 0: free entry */
	uint8_t n;
	uint8_t again; /* answers that came, and were no longer true */
	struct ipaddr addr;
	uint32_t adj; /* of a next hop that leads here; 0: none known */
	double since; /* monotonic_s() */
	struct rte_mbuf *m[HOLD_PER_NEIGHBOR];
};

struct punt {
	struct punt_conf conf;
	struct fib *fib;
	struct counters *count;
	struct worker *worker;
	ev_io *tap_io; /* one a slot; .data is NULL where no port is */
	ev_timer tick;
	struct held *hold; /* n_places entries, open addressing by hash */
	unsigned int n_places, max_hosts,
		max_hold;         /* some are always free: they end probes */
	unsigned int max_packets; /* of all neighbors: never the whole pool */
	unsigned int n_hold;      /* entries in use */
	unsigned int n_held;      /* packets in them */
	double none_before;       /* until then no entry is old enough to make room */
	uint8_t *linear;          /* scratch for chained mbufs, LINEAR_BYTES */
	uint16_t ip_id;
};

#define LINEAR_BYTES 65600

static inline uint8_t *
l3_of(struct rte_mbuf *m)
{
	return rte_pktmbuf_mtod_offset(m, uint8_t *, L2_LEN);
}

/* --- out.c -------------------------------------------------------------------------------- */

/*
 * A packet is lost: counted, and shown to who watches. Before its sender is told: who has the
 * ICMP error finds the drop in the counters. Keeps `m`.
 */
void punt_lost(struct punt *p, struct rte_mbuf *m, enum reason reason);

/* The same, and the packet is freed. */
void punt_drop(struct punt *p, struct rte_mbuf *m, enum reason reason);

/* Give a finished frame to a forwarder, to leave by interface `ifidx`; takes `m`. */
void punt_inject(struct punt *p, struct rte_mbuf *m, uint16_t ifidx);

/* --- forward.c ---------------------------------------------------------------------------- */

/*
 * Forward one packet the slow way: lookup, neighbor, MTU, TTL (unless we originated it),
 * MACs. What still lacks a neighbor is held when `may_hold`. Takes `m`.
 */
void punt_forward(struct punt *p, struct rte_mbuf *m, uint8_t family, bool originated,
		  bool may_hold);

/* Send the ICMP error that belongs to the drop of a packet, if any; takes `m`. */
void punt_tell_sender(struct punt *p, struct rte_mbuf *m, enum reason cause);

/* Cut an IPv4 packet to fit `mtu` and send the pieces; takes `m`. */
void punt_fragment(struct punt *p, struct rte_mbuf *m, uint16_t mtu);

/* The answer about a neighbor: its packets leave or die. */
void punt_release_answered(struct punt *p, const struct msg_neigh *answer);
/* Free what waited too long. */
void punt_release_expired(struct punt *p, double now);

/* --- hold.c ------------------------------------------------------------------------------- */

/* Whom a packet waits for. */
struct awaited {
	uint16_t ifidx;
	uint8_t family;
	struct ipaddr addr;
	uint32_t adj; /* adjacency of the next hop; 0: a host of the link */
};

/* Which neighbor does a packet lack, whose header is at `ip` and whose path is `path`? */
struct awaited hold_awaited(const struct punt *p, fib_path path, uint8_t family,
			    const uint8_t *ip);

/* Wait for a neighbor; takes `m`. */
void hold_packet(struct punt *p, struct rte_mbuf *m, const struct awaited *who);
/* Do packets wait for it? */
bool hold_waits(struct punt *p, const struct awaited *who);
/* Nobody does: forwarders need not follow by this thread any more. */
void hold_over(struct punt *p, const struct awaited *who);

/* Take out the packets that wait for this neighbor; false: none do. */
bool hold_take_answered(struct punt *p, const struct msg_neigh *answer, struct held *out);
/* Take out packets that have waited too long, the next from `*place` on; false: none. */
bool hold_take_expired(struct punt *p, double now, unsigned int *place, struct held *out);
/*
 * Call this when the packets that were taken out have left or wait again. Packets that wait keep
 * the time since when `was` waits, and count one more answer.
 */
void hold_again(struct punt *p, const struct held *was);

/* As much room as p->conf.limits says. Returns 0 or -ENOMEM. */
int hold_begin(struct punt *p);
void hold_clear(struct punt *p);

/* --- icmp.c ------------------------------------------------------------------------------- */

/*
 * Make an ICMP error about `m` (type and code of its family), when RFC 1812, 4.3.2.7 or RFC
 * 4443, 2.4 (e) allow and the rate does; `arg` goes into octets 4..7 (MTU). Keeps `m`. Returns
 * the packet, the caller's to forward, or NULL.
 */
struct rte_mbuf *icmp_make(struct punt *p, struct rte_mbuf *m, uint8_t type, uint8_t code,
			   uint32_t arg);
/* The same for the error that belongs to a drop reason. */
struct rte_mbuf *icmp_make_for_drop(struct punt *p, struct rte_mbuf *m, enum reason cause);

/* --- learn.c ------------------------------------------------------------------------------ */

/*
 * Whom does the kernel speak with? One frame of its own, from the TAP of port `ifidx`.
 * Returns the interface that it leaves by: the port, or a VLAN on it.
 */
uint16_t learn_peer(struct punt *p, const uint8_t *frame, uint32_t len, uint16_t ifidx);

/* --- tapio.c ------------------------------------------------------------------------------ */

/* TAP side: wire to kernel (takes `m`), kernel to wire. */
void tap_deliver(struct punt *p, struct rte_mbuf *m);
void tap_poll(struct punt *p, unsigned int port, bool on);
void tap_replace(struct punt *p, const struct msg_tap *t);
void tap_begin(struct punt *p, unsigned int port);
void tap_forget(struct punt *p, unsigned int port);
int tap_start(struct punt *p);
void tap_stop(struct punt *p);

#endif
