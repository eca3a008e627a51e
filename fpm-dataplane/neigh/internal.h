/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of the neigh thread share; nobody else includes this. All is [neigh].
 *
 *   neigh.c -> ports.c -> link_event.c -> vlan.c -> iface.c -> adjacency.c <-> hosts.c
 *                `-> carrier.c -> iface.c                         `-> glean.c
 *
 * Each file may call those to its right, and link.c, table.c, vrf.c and retire.c, which call
 * none of these back. hosts.c calls adjacency.c for one thing: the next neighbor gets a place
 * that became free.
 */
#ifndef NEIGH_INTERNAL_H
#define NEIGH_INTERNAL_H

#include <ev.h>
#include <linux/neighbour.h>
#include <urcu/urcu-qsbr.h>
#include <urcu/list.h>

#include "base/msg.h"
#include "fib/fib.h"
#include "tap-bridge/kmon.h"
#include "neigh/neigh.h"
#include "port/port.h"

#define RETRY_S        1.0 /* unresolved next hops are asked for */
#define CARRIER_POLL_S 0.1 /* devices whose link state no kernel event tells */
#define SWEEP_S        5.0 /* hosts in use are kept fresh */
#define GLEAN_S        5.0 /* packets wait no longer for an answer */
#define LINK_CHAINS    4096

#define NUD_USABLE \
	(NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT | NUD_NOARP)

struct neigh;

/* Something forwarders may still see: buried after a grace period. */
struct grave {
	struct grave *next;
	void (*bury)(struct neigh *n, struct grave *g);
};

/* A local address of the control namespace. */
struct local {
	struct cds_list_head list; /* link.locals, in the kernel's order */
	struct kmon_addr addr;
	bool told; /* rib knows it */
};

/* An interface of the control namespace, be it a port's TAP or not. */
struct link {
	struct link *next; /* chain */
	uint32_t ifindex;
	uint16_t ifidx; /* 0: no port */
	bool known;     /* false: only addresses have been heard of */
	bool told;      /* rib and punt know of it ... */
	bool told_up;   /* ... as up */
	char name[16];
	uint32_t table; /* that its addresses are in, as rib was told; 0: main */
	uint32_t owner; /* bond, bridge or team that it is part of; 0: none */
	uint16_t vrf;   /* of a VRF: the number it holds; FIB_VRF_NONE: none was left */
	struct kmon_link kernel; /* newest; valid while `known` */
	struct cds_list_head locals;
};

/* Who has the number of a VRF. */
struct vrf {
	uint32_t table;
	uint32_t refs;     /* VRFs of the kernel with this table; 0: nobody */
	uint32_t namesake; /* ifindex of the one whose name it has */
};

/* A port and its TAP; or a VLAN on one, of which only what is marked (*) has a meaning. */
struct iface {
	struct port *port;    /* (*) of a VLAN the one it is on; NULL: no such interface */
	uint16_t on;          /* (*) interface that a VLAN is on; 0: a port */
	struct tap twin;      /* its TAP, the port's descriptor; punt reads and writes it */
	struct kmon_link tap; /* (*) newest of it, or of the VLAN; valid while `present` */
	bool present;         /* (*) that exists */
	struct if_counters base;  /* of a VLAN's number, when it came: not its own */
	bool resting;             /* (*) a VLAN that was; its number is not given out yet */
	bool lost;                /* it was deleted, and there is no other yet */
	int lost_error;           /* why not, as told last; 0: not tried */
	bool leaving;             /* the port is about to go, by intent */
	bool carrier;             /* of the port */
	bool carrier_set;         /* and the TAP has been told */
	bool unsaid, unsaid_up;   /* (*) FRR is to hear of a carrier, of which */
	unsigned int untold;      /* changes of it that the log has no line of */
	double lines, lines_at_s; /* of the log, that are its due; monotonic, then */
	double patience_until_s; /* monotonic; until then a link that is down may be late */
	bool up;      /* (*) admin up, with carrier; a VLAN: what it is on, too */
	bool can_ask; /* (*) up, and the kernel's own view is too */
	bool forward4, forward6;    /* (*) the sysctls */
	bool borrows;               /* (*) lacks an address of its own for ICMP errors */
	bool lends4, lends6;        /* (*) has one, which others may borrow */
	unsigned int behind;        /* ifindex of kernel_if in our namespace; 0: not seen */
	bool behind_lost;           /* it was deleted; AF_PACKET sockets do not move */
	uint8_t dev_mac[6];         /* what the device was given last */
	unsigned int dev_mtu_bytes; /* what the device has */
	unsigned int tap_mtu_bytes; /* what it was asked for last */
	bool tags_asked, takes_tags; /* does the device of a port? From its first VLAN on */
};

/* A published neighbor of a connected subnet. */
struct host {
	struct fib_host fib;
	struct grave grave;
	bool used; /* before the last sweep; fib->adj_used tells of what came since */
};

/* A next hop of rib's: adjacency `adj` follows neighbor `nb`. */
struct watch {
	struct cds_list_head list; /* nb.watches */
	struct nb *nb;
	uint32_t adj;
	bool alive; /* as rib knows it */
};

/*
 * A neighbor: of the kernel's table, or watched, or waited for, or several of these.
 * Lists are empty heads when the neighbor is not on them.
 */
struct nb {
	struct nb *next; /* chain */
	uint32_t slot;   /* place in neigh.nb_slot: never moves, so queries resume by it */
	uint16_t ifidx;
	uint8_t family;
	bool known; /* the kernel has an entry */
	bool has_mac;
	bool grace;   /* entry evicted by the kernel's GC: forward on until it is settled */
	bool refused; /* the kernel would not ask for it when it was told to, last time */
	uint8_t mac[6];
	uint16_t nud;
	struct ipaddr addr;
	struct cds_list_head watches;
	struct host *host;
	struct cds_list_head retry; /* neigh.retry: wanted and not settled */
	struct cds_list_head wish;  /* neigh.wish: ask the kernel at the end of the round */
	struct cds_list_head glean; /* neigh.gleans, oldest first */
	struct cds_list_head
		placeless;  /* neigh.placeless: usable, and no slot for its host */
	double glean_until; /* monotonic_s() */
};

struct neigh {
	struct neigh_conf conf;
	struct fib *fib;
	struct worker *worker;
	/* Room: neighbors of the kernel's, records in all, questions, VLANs, VRFs. */
	uint32_t most_known, most_nb, most_gleans, most_vlans, most_vrfs;
	struct kmon *control; /* control namespace */
	struct kmon *behind;  /* our namespace: links behind ports; NULL: none needed */
	bool resync;          /* a monitor failed: try again at the next tick */
	ev_io control_io, behind_io;
	ev_timer retry_timer, carrier_timer, sweep_timer, glean_timer;

	struct iface iface[IFIDX_MAX];
	uint32_t n_nb_on[IFIDX_MAX]; /* neighbor records of each */
	bool unsaid;                 /* of some interface */
	uint16_t unsaid_from;        /* of none before */
	uint16_t iface_end;          /* no interface has this number or a higher one */
	uint16_t next_vlan;          /* number to try first */
	uint16_t n_vlans;            /* numbers that are in use, or rest */
	bool left_out;               /* the kernel knows VLANs that found no number */
	bool borrow_due; /* addresses changed, or their VRF: who borrows looks again */
	bool macs_due;   /* a port has another: see iface_vlan_macs() */
	struct link *link[LINK_CHAINS];
	struct vrf vrf[FIB_VRF_NONE]; /* by number, from 1 */
	uint16_t vrf_end, next_vrf; /* none has this number or a higher one; to try first */
	uint16_t n_vrfs;            /* numbers that somebody has */
	bool vrf_left_out;          /* some VRF found none */
	bool forward6_all;          /* net.ipv6.conf.all.forwarding */

	struct nb **nb_chain;
	uint32_t n_chain; /* power of two */
	struct nb **nb_slot;
	uint32_t n_slot, room_slot; /* used once, allocated */
	uint32_t *free_slot;
	uint32_t n_free_slot;
	uint32_t n_nb;
	bool untold; /* the kernel knows some that found no room */
	struct cds_list_head retry, wish, gleans, placeless;
	unsigned int n_gleans;

	struct watch **watch; /* by adjacency, fib->adj_hosts entries */
	uint32_t *free_adj;   /* host slots given back */
	uint32_t n_free_adj, next_adj;

	struct grave *graves; /* retired in this round */
};

/* --- retire.c ------------------------------------------------------------------------------ */

/* Free something after a grace period; one call_rcu a round. */
void neigh_retire(struct neigh *n, struct grave *g,
		  void (*bury)(struct neigh *n, struct grave *g));
void neigh_retire_flush(struct neigh *n); /* at the end of a round */

/* --- link.c: records of links --------------------------------------------------------------- */

struct link *link_find(struct neigh *n, uint32_t ifindex);
/* Find or make one; NULL, logged: no memory. */
struct link *link_get(struct neigh *n, uint32_t ifindex);
/* With its addresses. */
void link_free(struct neigh *n, struct link *l);
void link_free_all(struct neigh *n);
/* The VRF of this ifindex, which may be 0; NULL: it is none. */
const struct link *link_vrf(struct neigh *n, unsigned int ifindex);
/* The bond, bridge or team that one of ours is part of: no VRF. NULL: none. */
const struct link *link_owner(struct neigh *n, const struct link *l);
/* The table that an interface's addresses are in: of a VRF, or 0 for main. */
uint32_t link_table(struct neigh *n, const struct link *l);
/* Port of a TAP; 0 when the interface is none of ours. */
uint16_t iface_by_ifindex(struct neigh *n, uint32_t ifindex);
/* Send MSG_LINK to rib and punt. */
void link_tell(struct neigh *n, const struct link *l, bool gone);
/* The same when `up` is news. */
void link_tell_up(struct neigh *n, struct link *l, bool up);

/* --- link_event.c: interfaces and addresses, told to rib and punt --------------------------- */

void link_event(void *ctx, const struct kmon_link *kl, bool gone);
void addr_event(void *ctx, const struct kmon_addr *ka, bool gone);
/* Have VLANs on a link forgotten, until the kernel is asked again. */
void link_forget_vlans(struct neigh *n, unsigned int ifindex);
/* VLANs were left out, and there are numbers again: have the kernel asked for them. */
void link_retry_vlans(struct neigh *n);

/* --- ports.c: ports that come and go, and their TAPs ---------------------------------------- */

/* Take the ports that are there at the start; open the monitor of their devices, where any needs
 * one. Returns 0 or -errno. */
int ports_setup(struct neigh *n);
/* Have the links of devices watched or polled. */
void ports_watch(struct neigh *n);
/* All that the kernel has was told: a TAP that was not is gone. */
void ports_first_look(struct neigh *n);
/* A port comes, or goes, while packets pass. */
void ports_add(struct neigh *n, struct port *port);
void ports_remove(struct neigh *n, uint16_t ifidx);
/* Make TAPs anew in place of those that are gone. */
void ports_reopen_lost(struct neigh *n);

/* --- iface.c: ports and VLANs as forwarders see them ----------------------------------------- */

void iface_changed(struct neigh *n, uint16_t ifidx, const struct kmon_link *kl);
/* The TAP of a port was deleted, or has left the namespace. */
void iface_tap_gone(struct neigh *n, uint16_t ifidx);
/* What decides on `up` of an interface, or of those on it, may have changed. */
void iface_refresh(struct neigh *n, uint16_t ifidx);
/* Port whose TAP this is, be it known by then or not; 0: none. */
uint16_t iface_of_tap(const struct neigh *n, const struct kmon_link *kl);
/* Show forwarders the port as it is; false when they see it so already. */
bool iface_publish(struct neigh *n, uint16_t ifidx);
/* Addresses of `ifidx`, or (0) of an interface that is none of ours, have changed. */
void iface_addresses_changed(struct neigh *n, uint16_t ifidx);
/* Once a round: who has no address of its own looks for one. */
void iface_borrow(struct neigh *n);
/* Once a round: a MAC that was a port's may be its VLANs' alone now. */
void iface_vlan_macs(struct neigh *n);
void iface_conf_event(void *ctx, const struct kmon_conf *kc, bool gone);

/* --- carrier.c ----------------------------------------------------------------------------- */

void carrier_set(struct neigh *n, uint16_t ifidx, bool up);
void carrier_look(struct neigh *n, uint16_t ifidx); /* at the link of a port's device */
void carrier_poll(struct neigh *n);
void carrier_announce(struct neigh *n); /* to FRR; the rest in the next round */
void carrier_settle(struct neigh *n);   /* of ports that nobody spoke of: down */
void carrier_say_rest(struct neigh *n); /* to the log, once a second */

/* --- vlan.c: VLANs on ports, and VLANs on those ------------------------------------------- */

/* Number of a new interface for the VLAN `kl`; 0 when it is none on one of ours, logged. */
uint16_t vlan_add(struct neigh *n, const struct kmon_link *kl);
/* Is this still what the VLAN was when it was added: on the same interface, by that tag? */
bool vlan_is(const struct neigh *n, uint16_t ifidx, const struct kmon_link *kl);
/* It is no more, or what it was on; nothing of it is known from here on. */
void vlan_remove(struct neigh *n, uint16_t ifidx);

/* --- vrf.c: VRFs of the kernel and their numbers -------------------------------------------- */

/* Link `l` is a VRF, has changed, or is one no more. */
void vrf_follow(struct neigh *n, struct link *l);
/* It gives back the number that it held, after its members have left. */
void vrf_release(struct neigh *n, uint16_t number);
/* What an interface has in fib_iface.vrf. */
uint16_t vrf_of(struct neigh *n, const struct link *l);

/* --- table.c: neighbor records ------------------------------------------------------------ */

struct nb *nb_find(const struct neigh *n, uint16_t ifidx, uint8_t family,
		   const struct ipaddr *addr);
/* Find or make one; NULL when the table is full. */
struct nb *nb_get(struct neigh *n, uint16_t ifidx, uint8_t family,
		  const struct ipaddr *addr);
/* Free a record that nobody has a use for any more. */
void nb_release(struct neigh *n, struct nb *nb);
void nb_free_all(struct neigh *n);
/* Is the kernel's entry one to send to? */
bool nb_usable(const struct neigh *n, const struct nb *nb);
/* Ask the kernel for `nb` at the end of this round. */
void nb_ask(struct neigh *n, struct nb *nb);

/* --- adjacency.c: the kernel's word, and watched next hops --------------------------------- */

void neigh_event(void *ctx, const struct kmon_neigh *kn, bool gone);
/* Bring everything that hangs on `nb` in line with its state; may free it. */
void nb_apply(struct neigh *n, struct nb *nb);
/* The same for all neighbors of an interface that went up or down. */
void nb_apply_iface(struct neigh *n, uint16_t ifidx);
/* The same for all of an interface that is about to be no more: the kernel knows none. */
void nb_forget_iface(struct neigh *n, uint16_t ifidx);
void nb_ask_flush(struct neigh *n);
void nb_retry(struct neigh *n);
void watch_add(struct neigh *n, struct msg_adj *m); /* sends m back */
/* Takes the message: it becomes the answer. */
void watch_remove(struct neigh *n, struct msg_adj *m);

/* --- hosts.c: neighbors of connected subnets ---------------------------------------------- */

/* Publish, update or (hop 0) withdraw. */
void host_apply(struct neigh *n, struct nb *nb, uint64_t hop);
/* Has traffic gone there in the last seconds? */
bool host_in_use(const struct neigh *n, const struct nb *nb);
void host_sweep(struct neigh *n);

/* --- glean.c: packets that wait ------------------------------------------------------------- */

void glean_ask(struct neigh *n, const struct msg_neigh *m);
void glean_over(struct neigh *n, const struct msg_neigh *m);
/* Answer when there is somebody waiting for `nb`. */
void glean_answer(struct neigh *n, struct nb *nb, bool resolved);
void glean_expire(struct neigh *n);

/* --- query.c --------------------------------------------------------------------------------- */

/* Takes the message: it becomes the answer. */
void query_answer(struct neigh *n, struct msg_query *q);

static inline void
neigh_start_timer(struct neigh *n, ev_timer *timer, double every_s)
{
	ev_timer_set(timer, every_s, every_s);
	ev_timer_start(n->worker->loop, timer);
}

static inline void
neigh_start_io(struct neigh *n, ev_io *io, const struct kmon *km)
{
	ev_io_set(io, kmon_fd(km), EV_READ);
	ev_io_start(n->worker->loop, io);
}

static inline bool
nb_is_waited_for(struct nb *nb)
{
	return !cds_list_empty(&nb->glean);
}

static inline bool
nb_is_watched(struct nb *nb)
{
	return !cds_list_empty(&nb->watches);
}

#endif
