/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * internal: the declarations that the files of the punt thread share. All functions are for
 * [punt].
 */
#ifndef PUNT_INTERNAL_H
#define PUNT_INTERNAL_H

#include <ev.h>
#include <rte_mbuf.h>

#include "base/counters.h"
#include "base/msg.h"
#include "fib/fib.h"
#include "port/port.h"
#include "punt/punt.h"
#include "punt/vteps.h"

#define L2_LEN    14
#define TAP_BURST 64
/*
 * neigh resolves the next hop of a changed route within a millisecond, or within ten
 * milliseconds on a busy machine. In this time 64 places are enough for some thousand
 * packets a second.
 */
#define QUEUE_PACKETS_MAX 64
/*
 * If the table is full, a new entry replaces the entry of the host for which packets have
 * waited longest, but only if they have waited for this time. A host that exists replies
 * within milliseconds, so it keeps its entry even while a scan asks for 3000 absent hosts a
 * second. Entries of next hops are never removed. They have additional places, one sixth of
 * the number for hosts.
 */
#define QUEUE_AT_LEAST_S 0.25
#define QUEUE_AGAIN_MAX \
	10             /* answers without effect before a drop: see neigh_queue_release() */
#define QUEUE_MAX_S 10 /* the longest wait, even if neigh never answers */

struct neigh_queue {
	uint16_t ifidx;
	uint8_t family; /* of the neighbor; 0: free entry */
	uint8_t n;      /* packets in m[] */
	uint8_t again;  /* answers of neigh that were out of date when they came */
	struct ipaddr addr;
	uint32_t adj; /* adjacency of a next hop with this address; 0: none known */
	double since; /* monotonic_s() when the first packet came */
	struct rte_mbuf *m[QUEUE_PACKETS_MAX];
};

struct punt {
	struct punt_conf conf;
	struct fib *fib;
	struct counters *count;
	struct worker *worker;
	ev_io *tap_io; /* one per slot; .data is NULL if the slot has no port */
	ev_timer tick;
	struct neigh_queue *queue; /* n_places entries, open addressing by hash */
	unsigned int n_places, max_hosts,
		max_queues;       /* below n_places, so that probes end */
	unsigned int max_packets; /* for all neighbors together: never the whole pool */
	unsigned int n_queues;    /* entries in use */
	unsigned int n_waiting;   /* packets in these entries */
	double none_before; /* before this time no entry is old enough to be removed */
	uint8_t *linear;    /* scratch for chained mbufs, LINEAR_BYTES */
	uint16_t ip_id;
	struct punt_vteps vteps;
	/* errors about each interface in this second: see pmtu.c */
	uint8_t n_told[IFIDX_MAX];
	bool any_told; /* n_told[] is not all zero */
};

#define LINEAR_BYTES 65600

static inline uint8_t *
l3_of(struct rte_mbuf *m)
{
	return rte_pktmbuf_mtod_offset(m, uint8_t *, L2_LEN);
}

/* --- out.c ---------------------------------------------------------------------------- */

/*
 * Count a dropped packet and show it to watching sessions. Call this before the sender gets
 * an ICMP error, because a sender that has the error must find the drop in the counters.
 * Keeps `m`.
 */
void punt_lost(struct punt *p, struct rte_mbuf *m, enum reason reason);

/* Count a dropped packet as punt_lost() does, and free it. */
void punt_drop(struct punt *p, struct rte_mbuf *m, enum reason reason);

/* Give a finished frame to a forwarder, which sends it by interface `ifidx`. Takes `m`. */
void punt_inject(struct punt *p, struct rte_mbuf *m, uint16_t ifidx);

/*
 * Give the kernel a packet that we originated. The kernel routes it and sends it as its
 * own. `path` has the kind PATH_KERNEL: it leads to an interface of the kernel. Takes `m`.
 */
void punt_originate(struct punt *p, struct rte_mbuf *m, uint8_t family, fib_path path);

/* --- forward.c ------------------------------------------------------------------------ */

/*
 * Forward one packet: lookup, neighbor, MTU, TTL (unless we originated the packet), MACs. A
 * packet whose neighbor is not resolved waits if `may_wait`, else it is dropped. Takes `m`.
 */
void punt_forward(struct punt *p, struct rte_mbuf *m, uint8_t family, bool originated,
		  bool may_wait);

/*
 * Forward a packet whose neighbor was not resolved when a forwarder had the packet. Look
 * the packet up again, because routes may have changed while it was in the ring. It waits
 * if its neighbor is not resolved yet, or if other packets still wait for this neighbor.
 * Takes `m`.
 */
void punt_forward_in_turn(struct punt *p, struct rte_mbuf *m);

/* Send the ICMP error about a dropped packet, if the drop causes one. Takes `m`. */
void punt_tell_sender(struct punt *p, struct rte_mbuf *m, enum reason cause);

/* Fragment an IPv4 packet to fit `mtu` and forward the fragments. Takes `m`. */
void punt_fragment(struct punt *p, struct rte_mbuf *m, uint16_t mtu);

/* Forward or drop the packets of a neighbor after neigh's answer. */
void punt_release_answered(struct punt *p, const struct msg_neigh *answer);
/* Drop the packets that have waited longer than QUEUE_MAX_S. */
void punt_release_expired(struct punt *p, double now);

/* --- filter.c ------------------------------------------------------------------------- */

enum punt_judgment {
	PUNT_PASSES,
	PUNT_DROPPED,  /* the packet is freed */
	PUNT_REJECTED, /* the drop is counted; the caller sends the ICMP error */
};

/*
 * Judge a packet that leaves by `out`, unless a forwarder has judged it for `out`. The IP
 * header of the packet is at `ip`.
 */
enum punt_judgment punt_filter(struct punt *p, struct rte_mbuf *m, uint8_t *ip,
			       uint8_t family, const struct fib_iface *out);

/* --- neigh_queue.c -------------------------------------------------------------------- */

/* The neighbor that a packet waits for. */
struct neigh_key {
	uint16_t ifidx;
	uint8_t family;
	struct ipaddr addr;
	uint32_t adj; /* adjacency of the next hop; 0: a host of the link */
};

/*
 * Return the neighbor of an adjacency. `adj` must be from a lookup in the present grace
 * period, because later the number may belong to another neighbor.
 */
static inline struct neigh_key
neigh_key_of_adj(const struct punt *p, uint32_t adj)
{
	const struct fib_adj *its = &p->fib->adj[adj];

	return (struct neigh_key){its->ifidx, its->family, its->addr,
				  adj < p->fib->adj_hosts ? adj : 0};
}

/*
 * Return the neighbor that a packet waits for. The IP header of the packet is at `ip`
 * (NULL: there are only labels), its path is `path`. The result has family 0 if the path
 * leads into a tunnel or to a VTEP and the outer packet no longer has a neighbor, or if the
 * path names no neighbor and `ip` is NULL.
 */
struct neigh_key neigh_key_of(const struct punt *p, fib_path path, uint8_t family,
			      const uint8_t *ip);

/* Let a packet wait for a neighbor. Takes `m`. */
void neigh_queue_add(struct punt *p, struct rte_mbuf *m, const struct neigh_key *key);
/* Return true if packets wait for this neighbor. */
bool neigh_queue_exists(struct punt *p, const struct neigh_key *key);
/*
 * Set ADJ_OPEN, because no packet waits for this neighbor: forwarders may send to it
 * directly again.
 */
void neigh_queue_over(struct punt *p, const struct neigh_key *key);

/* Take out the packets that wait for this neighbor. Returns false if none wait. */
bool neigh_queue_take_answered(struct punt *p, const struct msg_neigh *answer,
			       struct neigh_queue *out);
/*
 * Take out the next packets that have waited too long, from `*place` on. Returns false if
 * there are none.
 */
bool neigh_queue_take_expired(struct punt *p, double now, unsigned int *place,
			      struct neigh_queue *out);
/*
 * Call this after the packets that were taken out were sent or queued again. If packets are
 * queued again, their entry gets the start time of `was`, and counts one more answer.
 */
void neigh_queue_again(struct punt *p, const struct neigh_queue *was);

/* Allocate the table with the limits of p->conf.limits. Returns 0 or -ENOMEM. */
int neigh_queue_begin(struct punt *p);
void neigh_queue_clear(struct punt *p);

/* --- icmp.c --------------------------------------------------------------------------- */

struct icmp_error {
	uint8_t type, code; /* of the packet's family */
	/* octets 4 to 7: the MTU, or the offset that a parameter problem reports */
	uint32_t arg;
	/* The labels with which the packet came, removed from `m`; NULL: none. */
	const struct punt_labels *labels;
};

/*
 * Make an ICMP error about `m`, if RFC 1812, 4.3.2.7 or RFC 4443, 2.4 (e) and the rate
 * allow it. Keeps `m`. Returns the error, which the caller forwards, or NULL.
 */
struct rte_mbuf *icmp_make(struct punt *p, struct rte_mbuf *m,
			   const struct icmp_error *error);
/* Make the ICMP error for a drop reason, as icmp_make() does. */
struct rte_mbuf *icmp_make_for_drop(struct punt *p, struct rte_mbuf *m, enum reason cause,
				    const struct punt_labels *labels);

/* --- learn.c -------------------------------------------------------------------------- */

/*
 * Learn peers of the kernel from one of its frames, read from the TAP of port `ifidx`.
 * Returns the interface by which the frame leaves: the port, or a VLAN on it.
 */
uint16_t learn_peer(struct punt *p, const uint8_t *frame, uint32_t len, uint16_t ifidx);

/* --- tapio.c -------------------------------------------------------------------------- */

/*
 * Move frames from TAP to port and from port to TAP. tap_deliver() takes `m`. tap_poll()
 * starts or stops reading.
 */
void tap_deliver(struct punt *p, struct rte_mbuf *m);
void tap_poll(struct punt *p, unsigned int port, bool on);
void tap_replace(struct punt *p, const struct msg_tap *t);
void tap_begin(struct punt *p, unsigned int port);
void tap_forget(struct punt *p, unsigned int port);
int tap_start(struct punt *p);
void tap_stop(struct punt *p);

#endif
