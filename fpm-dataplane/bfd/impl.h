/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * impl: the declarations that the files of the bfd thread share. All functions are for
 * [bfd], unless stated otherwise.
 *
 * A file calls only files that are below it in this list.
 *
 *     bfd.c       the thread: messages, timers, its end
 *     judge.c     timers that are due: detection times, with the help of the forwarders
 *     receive.c   packets from forwarders and from the kernel
 *     conn.c      connections to bfdd: opened, read, closed
 *     session.c   sessions: added, changed, deleted, adopted; the effects of a change of state
 *     beat.c      the packets that the forwarders send and expect
 *     lend.c      the real-time priority that forwarders without CPU time get
 *     kernel.c    sockets of sessions over interfaces that are not ports
 *     report.c    messages to bfdd
 *     hop.c       dead next hops, for rib
 *     table.c     sessions by their numbers, and their counters
 *     place.c     the interface and the local address of a session
 *     timer.c     timers of sessions
 *     netif.c     sockets and interfaces of the control namespace
 *     keep.c      memory that outlives the daemon
 *
 * Pure files, without a thread of their own: plan.c (which connections to open and to
 * close), fsm.c (the state machine), dplane.c (messages of bfdd), packet.c, rows.c.
 */
#ifndef BFD_IMPL_H
#define BFD_IMPL_H

#include <ev.h>
#include <sys/socket.h>

#include "base/bfd_status.h"
#include "base/clock.h"
#include "base/counters.h"
#include "base/due.h"
#include "base/msg.h"
#include "base/worker.h"
#include "bfd/bfd.h"
#include "bfd/dplane.h"
#include "bfd/fsm.h"
#include "bfd/plan.h"
#include "port/bfd.h"

#define BFD_SESSIONS       (BFD_SLOTS / 2) /* numbers 1 to BFD_SESSIONS - 1 */
#define BFD_HOLD_NS        10000000000ull  /* how long an orphan session is kept */
#define BFD_PEER_S         200u /* period of reports of peers, below PEER_SECONDS */
#define BFD_REPEAT_S       4u   /* period of the repeated reports of Up sessions */
#define BFD_CONNS_MAX      (BFD_DESCRIPTORS - 1)
#define BFD_KERNEL_SOCKETS 4u  /* IPv4 and IPv6, one hop and several */
#define BFD_KERNEL_OCTETS  64u /* read from a packet: BFD needs 24 without authentication */
#define BFD_ECHO_TTL       254u   /* of a returned echo packet: the peer has forwarded it */
#define BFD_TCLASS         0xc0u  /* CS6, as for routing protocols: RFC 4594, 3.2 */
#define BFD_PORT_LEAST     49152u /* source ports: RFC 5881, 4 */

/*
 * The part of a session that outlives the daemon (keep.c). Plain data, without pointers and
 * with a fixed layout. Its index is the number of its slot in the bfd_table.
 */
struct kept {
	/*
	 * Odd while the thread changes the record. A record that is found odd is dropped.
	 */
	_Atomic uint32_t writing;
	bool used;
	bool leaving; /* deleted by bfdd: AdminDown is sent until fsm.silent_at */
	bool pruned;  /* rib has the report that the next hop is dead */
	uint16_t src_port;
	uint32_t echo_discr;
	uint32_t hop_ifindex; /* with `pruned`: interface of the next hop */
	int32_t conn;         /* connection over which bfdd has the session; -1: none */
	struct bfd_dplane_session told; /* the last message of bfdd about the session */
	struct bfd_fsm fsm;
	/*
	 * The last known MAC address of the peer on interface `mac_ifindex`, as mac_word().
	 * 0: not known, or the session is not a single-hop session of IPv6 that forwarders
	 * serve.
	 */
	uint64_t mac;
	uint32_t mac_ifindex;
	uint64_t n_rx, n_tx; /* packets that the thread itself has received and sent */
	/*
	 * Packets that forwarders counted: control in, control out, echo in, echo out. Set
	 * by sessions_keep_counters().
	 */
	uint64_t by_slots[4];
};

/*
 * The octets of a partial message of a connection, in memory that outlives the daemon. The
 * octets in the socket continue the message.
 */
struct kept_part {
	/*
	 * Octets move from the socket. If the daemon is killed meanwhile, its successor
	 * does not know whether the socket still has them, and closes the connection.
	 */
	_Atomic bool moving;
	uint32_t n;
	uint8_t octets[BFD_DPLANE_MAX_BYTES];
};

enum bfd_by { BY_NONE, BY_FORWARDERS, BY_KERNEL };

/* The interface and addresses at which packets of a session leave and arrive. */
struct place {
	enum bfd_by by;
	/* Port or VLAN of a one-hop session that forwarders serve; else 0. */
	uint16_t ifidx;
	uint16_t vrf;
	uint32_t ifindex;    /* of the interface in the kernel; 0: the route decides */
	struct ipaddr local; /* BY_KERNEL: all zero if the kernel chooses the address */
	const char *reason;  /* BY_NONE: the reason */
};

struct session {
	struct kept *k; /* NULL: the number is free */
	uint32_t number;
	uint64_t orphan_ns; /* with k->conn < 0: time at which its hold began */
	struct place place;
	uint64_t before[4]; /* by_slots of the previous daemon */
	uint32_t n_downs;   /* fsm.n_downs when it was last counted in bfd_status */
	int kernel_tx;      /* BY_KERNEL: its socket; -1: none is open */
	uint64_t since_ms;  /* CLOCK_BOOTTIME of the last change of state */
};

/*
 * A received packet. `remote` is its source address, `local` its destination address,
 * `ifindex` the interface on which it arrived.
 */
struct received {
	bool multihop;
	uint8_t family, ttl;
	uint16_t vrf;
	uint32_t ifindex;
	struct ipaddr remote, local;
	const uint8_t *octets;
	unsigned int n;
};

/* Timers of a session: ids of b->due are number * N_TIMER + timer. */
enum bfd_timer {
	TIMER_DETECT, /* bfd_fsm_expire_at() */
	TIMER_ECHO,   /* echo packets are missing */
	TIMER_SEND,   /* BY_KERNEL: the next packet */
	TIMER_END,    /* the hold of an orphan or the announcement of AdminDown ends */
	N_TIMER
};

/* A connection to bfdd. */
struct conn {
	int fd; /* -1: none */
	ev_io io;
	struct bfd *b;
	struct kept_part *part;
	bool to_store; /* the service manager may not know whether it is open */
	bool broken;   /* a message was not sent: close it at the end of the round */
};

struct bfd {
	struct bfd_setup setup;
	struct worker *w;
	struct fib *fib;
	struct session session[BFD_SESSIONS];
	uint32_t high; /* sessions from here on have never been used */
	uint32_t n_sessions;
	struct kept *kept; /* BFD_SESSIONS records; shared memory */
	int kept_fd;
	bool kept_to_store; /* the service manager does not have kept_fd yet */
	/* Sessions of the previous daemon's connections may be missing in `kept`. */
	bool kept_lost;
	struct conn conn[BFD_CONNS_MAX];
	struct plan_conn plan_conn[BFD_CONNS_MAX];
	struct plan plan;
	bool connect_failed; /* bfdd does not listen, or ended a connection: wait a tick */
	bool full_said;
	struct counters *count;
	ev_timer tick; /* every second: connections, places, peers */
	uint32_t n_ticks;
	int kernel_rx[BFD_KERNEL_SOCKETS]; /* open if a session needs them; -1: closed */
	ev_io kernel_io[BFD_KERNEL_SOCKETS];
	bool kernel_ready; /* a receiving socket has a packet */
	int timer_fd;
	ev_io timer_io;
	struct due due; /* CLOCK_MONOTONIC, ns */
	uint64_t armed; /* time that timer_fd is set to */
	/* Detection: see judge.c. */
	bool asking;
	uint64_t asked_ns;
	uint64_t asked_round[COUNTERS_MAX], asked_idle[COUNTERS_MAX];
	/* Priorities that are lent: see lend.c. */
	bool may_lend;                      /* the thread has a real-time priority */
	uint32_t shortest_us;               /* between packets of forwarders; 0: none */
	uint64_t lend_at;                   /* next look at forwarders; DUE_NEVER: none */
	uint32_t lend_rounds[COUNTERS_MAX]; /* loan[].rounds at the last look */
	uint64_t random;
	uint64_t ended_rx, ended_tx; /* control packets of sessions that have ended */
};

/* --- conn.c --- */
/* Take over the connections of the previous daemon. conns_plan() opens new connections. */
void conns_begin(struct bfd *b);
/* Close all connections. bfdd notices it, unless another process has copies of them. */
void conns_end(struct bfd *b);
/*
 * Close broken connections. Open and close connections by the plan (plan.h). Call it at the
 * end of each round.
 */
void conns_plan(struct bfd *b);
/* Repeat echo requests and the reports of Up sessions to bfdd. Call it every second. */
void conns_tick(struct bfd *b);

/* --- hop.c --- */
/*
 * Report to rib whether the next hop of the session is dead, and whether the device with
 * the MAC address of the peer is dead.
 */
void session_prune(struct bfd *b, struct session *s);
/* Report again if the peer of the session has another MAC address. */
void session_prune_moved(struct bfd *b, struct session *s);
/* Report the dead next hops of the previous daemon to rib.                        [main] */
void sessions_tell_dead_hops(struct bfd *b);

/* --- report.c --- */
/* Send a whole message, or mark the connection as broken. */
void conn_send(struct conn *c, const uint8_t *octets, size_t n);
/* Report the state of a session to bfdd. */
void session_report(struct bfd *b, const struct session *s);

/* --- session.c --- */
/* Handle messages of bfdd that add or change a session, or delete it. */
void session_told(struct bfd *b, int conn, const struct bfd_dplane_session *told);
void session_untold(struct bfd *b, const struct bfd_dplane_session *told);
/* Make orphans of the sessions of a connection that has ended. Returns their number. */
uint32_t sessions_orphan(struct bfd *b, int conn);
/*
 * Announce AdminDown to the peer, so that it assumes no failure, and end the session
 * afterwards.
 */
void session_leave(struct bfd *b, struct session *s);
/* Handle TIMER_END: the session ends, begins to leave, or sends nothing from now on. */
void session_end_due(struct bfd *b, struct session *s);
/* Continue the sessions of the previous daemon. */
void sessions_resume(struct bfd *b);
/* Find the place again for each session whose place may have changed. */
void sessions_place(struct bfd *b);
/* Carry out the actions of the state machine, bits of enum bfd_act. */
void session_obey(struct bfd *b, struct session *s, unsigned int act);
/* End a session: free its number. */
void session_end(struct bfd *b, struct session *s);
/* Send all peers to the punt thread again. */
void sessions_tell_peers(struct bfd *b);

static inline void
kept_open(struct kept *k)
{
	atomic_store_explicit(&k->writing, k->writing + 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
}

static inline void
kept_close(struct kept *k)
{
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&k->writing, k->writing + 1, memory_order_relaxed);
}

/* --- table.c --- */
/* Return the interval between sent packets; 0: none are sent. */
uint32_t session_tx_us(const struct session *s);
/*
 * Return the interval between sent echo packets; 0: none are sent. Forwarders send them, and
 * the peer forwards them to our own address. No router forwards a packet of a link-local
 * address (RFC 3927, 7; RFC 4291, 2.5.6), so a session with such an address of ours has
 * none.
 */
uint32_t session_echo_us(const struct session *s);
/* Find a session; NULL: none. */
struct session *session_by_lid(struct bfd *b, uint32_t lid);
struct session *session_by_discr(struct bfd *b, uint32_t discr);
/* Note the time of the last packet of the session that forwarders received. */
void session_hear(struct bfd *b, struct session *s);
/* Copy the counters of the slots to the memory that outlives the daemon. */
void sessions_keep_counters(struct bfd *b);
void session_counters(const struct bfd *b, const struct session *s,
		      struct bfd_dplane_counters *c);
uint32_t random_draw(struct bfd *b);
/* Choose a source port. */
uint16_t src_port_draw(struct bfd *b);

/* --- receive.c --- */
/* Take the packets of all rings. */
void rings_take(struct bfd *b);
/* Take the packets of the kernel's sockets, up to a number per socket. */
void sockets_take(struct bfd *b);

/* --- timer.c --- */
int timers_begin(struct bfd *b);
void timers_end(struct bfd *b);
void timer_set(struct bfd *b, const struct session *s, enum bfd_timer t, uint64_t when);
/* Return the time that is set; DUE_NEVER: none. */
uint64_t timer_when(const struct bfd *b, const struct session *s, enum bfd_timer t);
/* Set the timer descriptor to the earliest timer. Call it after each round. */
void timers_arm(struct bfd *b);

/* --- judge.c --- */
/* Handle detection times that have ended, once all forwarders have polled their queues. */
void timers_judge(struct bfd *b);

/* --- beat.c --- */
/*
 * Publish the packet to send and the packet to expect for the present state of the session,
 * for forwarders or sockets. `now`: send the packet at once; `final`: before it, send the
 * answer to a Poll.
 */
void beat_publish(struct bfd *b, struct session *s, bool now, bool final);
/* Stop all packets of a session. */
void beat_end(struct bfd *b, struct session *s);

/* --- lend.c --- */
/* Set the time between two looks by the shortest interval between packets of all slots. */
void lend_pace(struct bfd *b);
/*
 * Shorten the time between two looks if `interval_us` is shorter than the shortest interval
 * between packets of forwarders so far. 0: no packets are sent.
 */
void lend_faster(struct bfd *b, uint32_t interval_us);
/*
 * Lend the priority to forwarders that had no round since the last look, if a look is due.
 */
void lend_look(struct bfd *b);

/* --- kernel.c --- */
void kernel_begin(struct bfd *b);
void kernel_close(struct bfd *b);
/*
 * Open the receiving sockets if they are needed: by sessions of kernel.c, and by sessions
 * over several hops. Close them when the last session that needs them ends, or when bfdd
 * ends, because the next bfdd may need the UDP ports itself.
 */
void kernel_tick(struct bfd *b);
/*
 * Read a packet from a receiving socket. `kind`: below BFD_KERNEL_SOCKETS. r->octets points
 * into `octets`. Returns 1; 0: there is none; -EBADMSG: it came without its control
 * messages.
 */
int kernel_read(struct bfd *b, unsigned int kind, uint8_t octets[BFD_KERNEL_OCTETS],
		struct received *r);
/* Publish as beat_publish() does, for a session with BY_KERNEL. */
void kernel_publish(struct bfd *b, struct session *s, bool now, bool final);
/* Send the periodic packet, and set the timer for the next one. */
void kernel_send(struct bfd *b, struct session *s);
/* Stop the packets of a session, and close its socket. */
void kernel_end(struct bfd *b, struct session *s);

/* --- netif.c --- */
/* Write a socket address of an AF_INET or AF_INET6 socket. Returns its length. */
socklen_t netif_address(sa_family_t family, const struct ipaddr *addr, uint16_t port,
			uint32_t scope, struct sockaddr_storage *out);
/* Open a UDP socket with the options that BFD needs. Returns its descriptor or -errno. */
int netif_socket(const struct bfd *b, sa_family_t family);
/*
 * Return the index of a kernel interface of the control namespace. Look up `ifindex` first,
 * then `name`. 0: there is none.
 */
uint32_t netif_index(const struct bfd *b, uint32_t ifindex, const char *name);
/*
 * Return the source address that the kernel chooses for packets to a neighbor on an
 * interface; all zero: none. Ask the kernel, because the FIB's copy of the addresses may be
 * incomplete.
 */
struct ipaddr netif_source(const struct bfd *b, uint8_t family, uint32_t ifindex,
			   const struct ipaddr *peer);

/* --- place.c --- */
void place_find(const struct bfd *b, const struct bfd_dplane_session *told,
		struct place *place);
/* Return true if the place is still valid. `up`: the session is Up. */
bool place_holds(const struct bfd *b, const struct bfd_dplane_session *told,
		 const struct place *place, bool up);

/* --- keep.c --- */
/*
 * Map the memory of the previous daemon, or create new memory. Returns 0 or -errno.
 *                                                                                    [main]
 */
int keep_begin(struct bfd *b);
/* Let the service manager keep the memory. Does not wait for it: see kept_to_store. */
void keep_store(struct bfd *b);
void keep_end(struct bfd *b);
/* Return the memory for the partial message of a connection. */
struct kept_part *keep_part(const struct bfd *b, unsigned int conn);
/* Note whether bfdd has sent all its sessions, so that no step of the plan is left. */
void keep_rest(struct bfd *b, bool at_rest);

#define STATUS_ADD(field, n) \
	atomic_fetch_add_explicit(&bfd_status.field, (n), memory_order_relaxed)
#define STATUS_SET(field, value) \
	atomic_store_explicit(&bfd_status.field, (value), memory_order_relaxed)

#endif
