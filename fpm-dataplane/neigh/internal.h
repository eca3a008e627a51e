/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared declarations of the neigh thread's files. No other folder includes this file. All
 * functions are for the neigh thread.
 *
 *   neigh.c -> ports.c -> link_event.c -> vlan.c --------------> iface.c -> adjacency.c -> hosts.c
 *                |              |-> tunnel.c -> no_port.c ------^  ^           glean.c <----'
 *                |              `-> vxlan.c --> no_port.c          |
 *                `-> carrier.c, mpls.c ----------------------------'
 *
 * Each file may call the files to its right. All files may call link.c, locals.c, tree.c,
 * table.c, vrf.c, vlan_table.c, macvlan.c, outer.c, vxlan_hop.c, tunnel_table.c,
 * vxlan_table.c, device_link.c, notify.c and retire.c, which call no file of the diagram.
 */
#ifndef NEIGH_INTERNAL_H
#define NEIGH_INTERNAL_H

#include <ev.h>
#include <linux/neighbour.h>
#include <urcu/urcu-qsbr.h>
#include <urcu/hlist.h>
#include <urcu/list.h>

#include "base/msg.h"
#include "fib/fib.h"
#include "fib/urpf.h"
#include "tap-bridge/kmon.h"
#include "neigh/neigh.h"
#include "neigh/tree.h"
#include "port/port.h"

#define RETRY_S        1.0 /* period of requests for unresolved next hops */
#define CARRIER_POLL_S 0.1 /* period in which links without events of the kernel are read */
#define SWEEP_S        5.0 /* period in which hosts in use are confirmed */
#define GLEAN_S        5.0 /* longest wait for the reply of a neighbor */
#define LINK_CHAINS    4096
#define IPV6_POLL_S    0.05 /* period in which the kernel's settings of IPv6 are read */

#define NUD_USABLE \
	(NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT | NUD_NOARP)

struct neigh;

/* An object that forwarders may still read. `free_fn` frees it after a grace period. */
struct retired {
	struct retired *next;
	void (*free_fn)(struct neigh *n, struct retired *r);
};

/* Ranks of an address as the source of ICMP errors. */
enum source_rank {
	RANK_NONE, /* unusable */
	RANK_LINK, /* IPv4: 169.254/16 */
	/* RFC 6724, 5, rule 3: all preferred addresses rank above all deprecated ones */
	RANK_DEPRECATED_ULA,
	RANK_DEPRECATED,
	RANK_ULA, /* the lowest rank of preferred addresses */
	RANK_GLOBAL,
	/*
	 * The values from here on are no ranks. Like the ranks, they are indices of
	 * link.use. The first two are for link-local IPv6 addresses.
	 */
	USE_LINKLOCAL,
	USE_LINKLOCAL_TENTATIVE,
	/*
	 * USE_OWN plus a rank: IPv4 addresses of scope link, which no other link may use.
	 */
	USE_OWN,
	N_USES = USE_OWN + RANK_GLOBAL + 1,
};

/* The ranks of the sources that an interface has. */
struct ranks {
	int v4, v6;
};

/* A local address of the control namespace. */
struct local {
	struct cds_list_head list; /* link.locals, in the order of the kernel */
	int64_t place;             /* grows along link.locals */
	struct tree_node by_address, by_place;
	struct kmon_addr addr;
};

/* An interface of the control namespace: a port's TAP, a VLAN, or any other. */
struct link {
	struct link *next; /* chain */
	/*
	 * Entries in chains while `known`: in n->above by the link below, in n->member by
	 * the master, in n->tagged by the link below and the VLAN.
	 */
	struct cds_hlist_node above, member, tagged;
	uint32_t ifindex;
	uint16_t ifidx; /* number of our interface; 0: the link is none of ours */
	bool known;     /* false: only addresses were reported */
	bool told;      /* rib and punt know the link ... */
	bool told_up;   /* ... and that it is up */
	char name[16];
	uint32_t table; /* table of its VRF; 0: main */
	uint32_t owner; /* its bond, bridge or team; 0: none */
	/* a VRF: its number; FIB_VRF_NONE: no number was free; 0: no VRF, or table main */
	uint16_t vrf;
	struct kmon_link kernel; /* last report; valid while `known` */
	/* the kernel has reported the next four fields, or that the link has no IPv6 */
	bool ipv6_told;
	bool ipv6_off;
	bool ndisc_notify; /* sysctl */
	unsigned int mtu6_bytes;
	bool force_forwarding6;  /* sysctl net.ipv6.conf.NAME.force_forwarding */
	bool ignore_linkdown[2]; /* sysctl ignore_routes_with_linkdown: IPv4, IPv6 */
	uint8_t rp_filter;       /* sysctl net.ipv4.conf.NAME.rp_filter */
	bool mpls_told;          /* the kernel reports net.mpls.conf of it */
	bool mpls;               /* sysctl net.mpls.conf.NAME.input */
	bool forward4_off;       /* sysctl net.ipv4.conf.NAME.forwarding is 0 */
	/*
	 * a tunnel or vxlan device: the logged reason why the kernel keeps it; NULL:
	 * forwarders serve it, or the link is no tunnel
	 */
	const char *tunnel_refused;
	uint16_t n_svis;    /* a vxlan device: number of interfaces (SVIs) over it */
	bool fdb_due;       /* ... its forwarding database is still to be read */
	bool fdb_refused;   /* ... fdb_wanted() refused an entry of it */
	bool kernels_vxlan; /* the link counts in n->n_kernels_vxlan */
	struct cds_list_head locals;
	int64_t place_first, place_last; /* the places in `locals` are from first to last */
	struct tree by_address;          /* the addresses of `locals`, sorted by address */
	/* the same by family and use (enum source_rank), sorted as in `locals` */
	struct tree use[2][N_USES];
	uint32_t n_addr4;
};

/* The VRFs of the kernel that share a number, because they have the same table. */
struct vrf {
	uint32_t table;
	uint32_t refs;     /* VRFs of the kernel with this table; 0: number is free */
	uint32_t named_by; /* ifindex of the VRF whose name rib has */
};

/*
 * An interface: a port and its TAP, a VLAN or macvlan, a tunnel, or an SVI. A VLAN or
 * macvlan uses only the fields marked (*).
 */
struct iface {
	/* (*) the port below; a tunnel or SVI: n->no_port; NULL: no such interface */
	struct port *port;
	bool tunnel;            /* a tunnel or an SVI, which are on no port */
	bool svi;               /* a bridge over a vxlan device, or a VLAN on that bridge */
	bool svi_due, svi_came; /* is in n->svi_due; needs svi_catch_up() */
	unsigned int vxlan;     /* an SVI: ifindex of its vxlan device */
	uint32_t vni;           /* an SVI: its VNI */
	uint16_t next_svi;      /* an SVI: the next one in its chain of svi_at; 0: none */
	uint16_t on;            /* (*) the interface below; 0: this is a port or a tunnel */
	/* (*) list of VLANs and macvlans on it; its entry in the list of `on`; 0: none */
	uint16_t first_on, last_on, next_on, prev_on;
	struct tap tap;          /* a port: its TAP; punt uses the descriptor, too */
	struct kmon_link kernel; /* (*) last report of it; valid while `present` */
	bool present;            /* (*) the TAP, VLAN or tunnel exists */
	bool came;               /* (*) see link_catch_up() */
	bool number_retired;     /* (*) removed; its number is not reused yet */
	bool lost;               /* the TAP was deleted and not yet recreated */
	int lost_error;          /* last error logged when it was not recreated; 0: none */
	bool leaving;            /* the port is being removed on request */
	bool carrier;            /* carrier of the port */
	bool carrier_set;        /* ... is known, and the TAP has it */
	/* the TAP had another carrier a period ago: see carrier_restore() */
	bool carrier_differs;
	struct port_link speed;         /* speed and duplex that the TAP was given last */
	bool speed_refused;             /* the kernel refused to set this speed */
	bool announce_due, announce_up; /* (*) carrier to be announced to FRR */
	unsigned int n_unlogged;        /* lines about the link that were not logged */
	double log_credit;              /* log lines that are allowed ... */
	double log_credit_at_s;         /* ... at that (monotonic) time */
	double link_wait_until_s;       /* monotonic; until then a link may still come up */
	/* (*) admin up with carrier; a VLAN: admin up, and the interface below is up */
	bool up;
	bool can_ask;  /* (*) up, and the kernel sees the carrier: it sends requests */
	bool forward4; /* (*) sysctl net.ipv4.conf.NAME.forwarding */
	bool ipv6_off; /* (*) as published */
	uint8_t ipv6_off_wait; /* (*) periods until the loss of IPv6 is logged; 0: none */
	unsigned int dev_ifindex; /* ifindex of kernel_if in our namespace; 0: unknown */
	/* kernel_if was deleted; AF_PACKET does not open a new one of this name */
	bool dev_lost;
	bool notify_due; /* (*) went admin up; addresses are to be announced: notify.c */
	/*
	 * dev_told: a link state was requested; dev_wanted_up: the last requested state was
	 * up
	 */
	bool dev_told, dev_wanted_up;
	/* of a port: settings of its device or TAP are still due; see device_result() */
	bool dev_due;
	/* last MAC that the device got; (*) a macvlan: its MAC in the device's filter */
	uint8_t dev_mac[6];
	struct mac_of *mac;           /* (*) see mac_hold(); NULL: none */
	unsigned int dev_mtu_bytes;   /* MTU of the device */
	unsigned int below_mtu_bytes; /* MTU of kernel_if; 0: no report yet */
	unsigned int tap_mtu_bytes;   /* last reported MTU of the TAP */
	/*
	 * tags_asked: at the first VLAN, the device was asked to strip and insert tags.
	 * takes_tags: it does so.
	 */
	bool tags_asked, takes_tags;
};

/* A published host of a connected subnet. */
struct host {
	struct fib_host fib;
	struct retired retired;
	bool used; /* used before the last sweep; fib->adj_used has later use */
};

/* A next hop of rib: adjacency `adj` follows neighbor `nb`. */
struct watch {
	struct cds_list_head list; /* nb.watches */
	struct nb *nb;
	uint32_t adj;
	/* as reported to rib */
	bool alive, resolved;
	uint64_t mac;
};

/*
 * A neighbor: in the kernel's table, watched, or awaited by packets. The list heads are
 * empty when the neighbor is not on the list.
 */
struct nb {
	struct nb *next;
	struct cds_hlist_node on; /* n->nb_on of its interface */
	uint32_t slot;            /* index in neigh.nb_slot; never changes, for queries */
	uint16_t ifidx;
	uint8_t family;
	bool known; /* the kernel has an entry */
	bool has_mac;
	bool grace;   /* evicted by the kernel's GC: forward until it is resolved again */
	bool refused; /* the kernel refused the last request, and that was logged */
	uint8_t mac[6];
	uint16_t nud;
	struct ipaddr addr;
	struct cds_list_head watches;
	struct host *host;
	struct fib_vxlan_hop *vxlan;  /* its headers, if it is behind a VXLAN and usable */
	struct cds_list_head retry;   /* neigh.retry: wanted and unresolved */
	struct cds_list_head to_ask;  /* neigh.to_ask: request at the end of the round */
	struct cds_list_head glean;   /* neigh.gleans, oldest first */
	struct cds_list_head no_slot; /* neigh.no_slot: usable, no free slot for its host */
	double glean_until;           /* monotonic_s() */
};

/* The VNI of a VLAN at a port of a bridge. */
struct vni {
	struct cds_hlist_node chain;
	struct kmon_vni kernel;
};

#define IFACE_WORDS (IFIDX_MAX / 64 + 1)

/* A set of interfaces, for example of lenders of an address: a bit for each number. */
struct iface_set {
	uint64_t word[IFACE_WORDS];
};

enum { V4, V6 }; /* families: indices of the sets */

static inline bool
set_has(const struct iface_set *set, uint16_t ifidx)
{
	return (set->word[ifidx / 64] >> ifidx % 64 & 1) != 0;
}

static inline void
set_put(struct iface_set *set, uint16_t ifidx, bool in)
{
	uint64_t bit = UINT64_C(1) << ifidx % 64;

	if (in)
		set->word[ifidx / 64] |= bit;
	else
		set->word[ifidx / 64] &= ~bit;
}

struct msg_rule_ifaces;

struct neigh {
	struct neigh_conf conf;
	struct fib *fib;
	struct worker *worker;
	/* Limits: neighbors of the kernel, all records, gleans, VLANs, VRFs. */
	uint32_t max_known, max_nb, max_gleans, max_vlans, max_vrfs;
	struct kmon *control;    /* control namespace */
	struct kmon *device_mon; /* our namespace, for devices; NULL: not needed */
	bool resync;             /* a monitor failed: resync when retry_timer fires */
	bool taps_unchecked;     /* no dump was whole: see ports_check_taps() */
	ev_io control_io, device_io;
	ev_timer retry_timer, carrier_timer, sweep_timer, glean_timer, ipv6_timer;
	double ipv6_read_at_s; /* monotonic: from then on IPv6 settings may be read again */

	struct iface iface[IFIDX_MAX];
	struct cds_hlist_head nb_on[IFIDX_MAX]; /* neighbor records of an interface */
	bool announce_due;      /* some interface has a carrier to announce */
	uint16_t announce_from; /* no interface with a lower number has an announcement */
	uint16_t iface_end;     /* all interface numbers are less than this */
	uint16_t next_vlan;     /* first number to try for a VLAN or tunnel */
	/* numbers of VLANs and tunnels that are in use, or not reused yet */
	uint16_t n_vlans;
	bool vlan_left_out; /* VLANs or tunnels of the kernel have no number */
	bool came;          /* some interface has `came` */
	/* stands for the port of a tunnel; it has no name and no number */
	struct port no_port;
	uint16_t n_tunnels, n_svis;
	/* number of tunnels and vxlan devices that name a link, by the link's ifindex */
	uint16_t n_bound[LINK_CHAINS];
	bool below_due; /* a link that a tunnel or vxlan device may name has changed */
	/* the table of tunnels (SVIs), for received packets, must be made again */
	bool tunnels_due, vxlans_due;
	/* entries of these tables that are not free */
	uint32_t n_tunnel_entries, n_vxlan_entries;
	bool tunnels_shared; /* an entry has FIB_TUNNEL_SHARED */
	/* SVIs that are up; those with another VRF, local address or port than vxlan_end */
	uint16_t n_svis_up, n_svis_other;
	struct fib_vxlan vxlan_end;
	uint32_t vxlan_cursor;    /* entry at which vxlans_one_end() continues */
	uint32_t n_kernels_vxlan; /* links with VNIs that forwarders do not serve */
	/* SVIs whose neighbors are handled at the end of the round: svi_note_due() */
	uint16_t svi_due[IFIDX_MAX];
	uint16_t n_svis_due;
	uint16_t svi_at[LINK_CHAINS];           /* first SVI of a chain; see svi_find() */
	struct cds_hlist_head vni[LINK_CHAINS]; /* of VLANs on bridges; see vxlan.c */
	unsigned int n_vnis;
	/* Sets of interfaces, per family, IPv4 first. Each of the interfaces: */
	struct iface_set lenders[2];      /* has an address that others may borrow */
	struct iface_set good_lenders[2]; /* ... of the best rank */
	struct iface_set borrowers[2]; /* has no good address of its own for ICMP errors */
	bool ipv6_unlogged;            /* some interface has an `ipv6_off_wait` */
	bool borrow_due[2]; /* addresses or VRFs changed: borrowers choose again */
	int notify_fd;      /* socket of notify.c; -1: not opened */
	bool macs_due;      /* a port's MAC changed: see iface_vlan_macs() */
	/* interfaces whose table of macvlans has to be made again: see macvlan.c */
	uint16_t macs_renew[IFIDX_MAX];
	uint16_t n_macs_renew;
	bool macs_renew_on[IFIDX_MAX];
	struct cds_hlist_head mac_of[LINK_CHAINS]; /* struct mac_of: see macvlan.c */
	uint64_t n_randoms;                        /* numbers that random_next() has made */
	uint64_t n_steps;     /* records that walks have passed, for tests */
	uint64_t n_publishes; /* calls of iface_publish(), for tests */
	uint64_t n_tables;    /* tables of received packets that were made, for tests */
	struct link *link[LINK_CHAINS];
	/*
	 * chains of the known links by the ifindex of the link below them, and of their
	 * master
	 */
	struct cds_hlist_head above[LINK_CHAINS], member[LINK_CHAINS];
	struct cds_hlist_head tagged[LINK_CHAINS]; /* ... by the link below and the VLAN */
	struct vrf vrf[FIB_VRF_NONE];              /* by number, from 1 */
	uint16_t vrf_end, next_vrf;          /* all VRF numbers are less; last one tried */
	uint16_t n_vrfs;                     /* numbers in use */
	bool vrf_left_out;                   /* a VRF has no number */
	struct msg_rule_ifaces *rule_ifaces; /* last message of rib; NULL: no rules */
	bool forward6_all;                   /* net.ipv6.conf.all.forwarding */
	bool ignore_linkdown4_all; /* net.ipv4.conf.all.ignore_routes_with_linkdown */
	uint8_t rp_filter_all;     /* net.ipv4.conf.all.rp_filter */
	uint32_t n_mpls;  /* number of links with `mpls_told`; 0: the kernel has no MPLS */
	int mpls_file[2]; /* net.mpls.ip_ttl_propagate, default_ttl; -1: not open */

	struct nb **nb_chain;
	uint32_t n_chain; /* power of two */
	struct nb **nb_slot;
	uint32_t n_slot, room_slot; /* used so far, allocated */
	uint32_t *free_slot;
	uint32_t n_free_slot;
	uint32_t n_nb;
	bool nb_left_out; /* the table has no room for all neighbors of the kernel */
	struct cds_list_head retry, to_ask, gleans, no_slot;
	unsigned int n_gleans;

	struct watch **watch; /* by adjacency, fib->adj_hosts entries */
	uint32_t *free_adj;   /* host slots that are free again */
	/* the number of these slots; the first host slot that was never used */
	uint32_t n_free_adj, next_adj;

	struct retired *retired; /* retired in this round */
};

/* --- retire.c ------------------------------------------------------------------------- */

/* Free an object after a grace period; one call_rcu per round. */
void neigh_retire(struct neigh *n, struct retired *r,
		  void (*free_fn)(struct neigh *n, struct retired *r));
/* Free memory of malloc() after a grace period. */
void neigh_retire_memory(struct neigh *n, void *memory);
void neigh_retire_flush(struct neigh *n); /* at the end of a round */

/* --- link.c: records of links --------------------------------------------------------- */

struct link *link_find(struct neigh *n, uint32_t ifindex);
/* Set the fields of a link that the kernel reports. */
void link_set(struct neigh *n, struct link *l, const struct kmon_link *kl);
/*
 * Return the chain that has the links on interface `on` with this VLAN, and perhaps others.
 */
struct cds_hlist_head *link_tagged(struct neigh *n, unsigned int on, uint16_t vlan);
/* Find or create a link. NULL if there is no memory (logged). */
struct link *link_get(struct neigh *n, uint32_t ifindex);
/* Free a link and its addresses. */
void link_free(struct neigh *n, struct link *l);
void link_free_all(struct neigh *n);
/*
 * Return the VRF with this ifindex, or the VRF that the link with this ifindex is in. A
 * member of a bond, bridge or team is in the VRF of that device. NULL: no VRF, or the
 * ifindex is 0.
 */
const struct link *link_vrf(struct neigh *n, unsigned int ifindex);
/* Return the bond, bridge or team of an interface of ours (not its VRF); NULL: none. */
const struct link *link_owner(struct neigh *n, const struct link *l);
/*
 * Return the check of the sources of transit packets from `l`: the larger one of rp_filter
 * of the interface and rp_filter of all. On an interface without an IPv4 address loose is
 * strict, as in Linux (fib_validate_source(), no_addr).
 */
enum fib_urpf link_urpf4(const struct neigh *n, const struct link *l);
/* Return the table of an interface's addresses: its VRF's, or 0 for main. */
uint32_t link_table(struct neigh *n, const struct link *l);
/* Return the number of our interface with this ifindex; 0: none. */
uint16_t iface_by_ifindex(struct neigh *n, uint32_t ifindex);
/* Send MSG_LINK to rib and punt. */
void link_tell(struct neigh *n, const struct link *l, bool gone);
/* Send MSG_LINK if `up` differs from the last report. */
void link_tell_up(struct neigh *n, struct link *l, bool up);
/* Send the settings of a link to rib, if rib knows the link. */
void link_tell_settings(struct neigh *n, const struct link *l);
/* Follow ignore_routes_with_linkdown of a link, or of all, and `forwarding` of IPv4. */
void link_conf_event(struct neigh *n, const struct kmon_conf *kc);

/* --- locals.c: the addresses of a link ------------------------------------------------ */

/* Return true if other links may borrow the address. */
bool addr_is_lent(const struct kmon_addr *ka);
/* Return the link's address `ka`, or NULL. */
struct local *local_find(struct neigh *n, struct link *l, const struct kmon_addr *ka);
/* Change the address `a`; NULL: add a new one. */
void local_set(struct neigh *n, struct link *l, struct local *a,
	       const struct kmon_addr *ka);
void local_remove(struct neigh *n, struct link *l, struct local *a);
/*
 * Write the best address of each family on a link to `fi`, if it is better than the address
 * there, whose rank is in *best. With `lent`, take only addresses that other links may use.
 */
void link_sources(struct neigh *n, const struct link *l, bool lent, struct fib_iface *fi,
		  struct ranks *best);
/* Return the best ranks of the addresses on a link that other links may use. */
struct ranks link_lent(const struct link *l);
/* Copy the preferred addresses of this link, ULAs included. */
void link_own_sources(struct neigh *n, const struct link *l, struct fib_iface *fi);
/* Copy the link-local addresses. */
void link_linklocals(struct neigh *n, const struct link *l, struct fib_iface *fi);

/* --- link_event.c: interfaces and addresses, reported to rib and punt ----------------- */

void link_event(void *ctx, const struct kmon_link *kl, bool gone);
void addr_event(void *ctx, const struct kmon_addr *ka, bool gone);
/* Handle a VNI that a VLAN of a bridge got or lost. */
void vni_event(void *ctx, const struct kmon_vni *kv, bool gone);
/* Treat VLANs on a link as deleted until the kernel is asked again. */
void link_forget_vlans(struct neigh *n, unsigned int ifindex);
/* Read the kernel's links again, if VLANs were left out and numbers are free again. */
void link_retry_vlans(struct neigh *n);
/*
 * Let the monitor report again the neighbors on links that the router has begun to serve.
 * They were ignored before. Call this once per round.
 */
void link_catch_up(struct neigh *n);

/* --- ports.c: adding and removing ports, and their TAPs ------------------------------- */

/*
 * Take over the ports present at the start. Open the monitor of their devices if a port
 * needs one. Returns 0 or -errno.
 */
int ports_setup(struct neigh *n);
/* Start to watch or poll the links of devices. */
void ports_watch(struct neigh *n);
/*
 * After a complete dump: a TAP that the kernel did not report is gone. After an incomplete
 * dump: set n->taps_unchecked, so that this is called again.
 */
void ports_check_taps(struct neigh *n);
/* Add or remove a port while packets are forwarded. */
void ports_add(struct neigh *n, struct port *port);
void ports_remove(struct neigh *n, uint16_t ifidx);
/* Turn IPv6 off on kernel interfaces behind ports, where others have turned it on. */
void ports_quiet_kernel(struct neigh *n);
/* Create TAPs again that were deleted. */
void ports_reopen_lost(struct neigh *n);
/* Give devices and TAPs the settings that are due. */
void ports_set_again(struct neigh *n);

/* --- iface.c: ports and VLANs as forwarders see them ---------------------------------- */

void iface_changed(struct neigh *n, uint16_t ifidx, const struct kmon_link *kl);
/* Handle a port's TAP that was deleted or left the namespace. */
void iface_tap_gone(struct neigh *n, uint16_t ifidx);
/* Compute `up` of an interface and of the VLANs on it again. */
void iface_refresh(struct neigh *n, uint16_t ifidx);
/* Return the port with this TAP, also if its link is not known yet; 0: none. */
uint16_t iface_of_tap(const struct neigh *n, const struct kmon_link *kl);
/* Return the largest MTU with which packets leave by the device of a port. */
unsigned int iface_dev_mtu(const struct iface *port);
/* Publish the interface to forwarders; false when nothing changed. */
bool iface_publish(struct neigh *n, uint16_t ifidx);
/* Keep `m`, the interfaces that rules concern, and publish all interfaces again. */
void iface_rules_event(struct neigh *n, struct msg_rule_ifaces *m);
/* Handle an interface that was removed: its addresses are no longer lent. */
void iface_lends_no_more(struct neigh *n, uint16_t ifidx);
/* Handle a change of an address that the published link `l` may lend. */
void iface_address_changed(struct neigh *n, const struct link *l, uint8_t family);
/* Let interfaces without an address choose an address to borrow. Once per round. */
void iface_borrow(struct neigh *n);
/* Accept a port's former MAC that its VLANs still have. Once per round. */
void iface_vlan_macs(struct neigh *n);
/*
 * Set MTU, MAC addresses and state of the kernel interface behind a port again, because
 * some may be missing. Other devices need no descriptor for their settings.
 */
void iface_set_dev_again(struct neigh *n, struct iface *port);
void iface_conf_event(void *ctx, const struct kmon_conf *kc, bool gone);
void iface_inet6_event(void *ctx, const struct kmon_inet6 *ki, bool gone);
/* After the kernel listed all links with IPv6: turn IPv6 off on the others. */
void iface_inet6_missing(struct neigh *n);
/* Log the interfaces that lost their IPv6 a second ago, and still exist. Each RETRY_S. */
void iface_inet6_log(struct neigh *n);

/* --- notify.c: announcements of addresses -------------------------------------------- */

/* Note that the interface went admin up, if `kl` reports so. Call before `kl` is stored. */
void notify_note(struct iface *ifc, const struct kmon_link *kl);
/* Announce the addresses of a port that has its carrier now, and of the VLANs on it. */
void notify_send(struct neigh *n, uint16_t ifidx);
void notify_close(struct neigh *n);

/* --- mpls.c: links that accept labels, and the TTL of labels ------------------------- */

void mpls_event(void *ctx, const struct kmon_mpls *km, bool gone);
/* Open the sysctls about the TTL, if the kernel has MPLS and they are not open. */
void mpls_open(struct neigh *n);
void mpls_close(struct neigh *n);
/* Read these sysctls, and publish the TTL of labels. */
void mpls_read_ttl(struct neigh *n);

/* --- carrier.c ------------------------------------------------------------------------ */

void carrier_set(struct neigh *n, uint16_t ifidx, bool up);
void carrier_read(struct neigh *n, uint16_t ifidx); /* read the device's link state */
/* Give the TAP the speed of the device. */
void carrier_set_speed(struct iface *ifc, const struct port_link *link);
/* Give the TAP the speed of the device, if it has changed or the TAP has no carrier yet. */
void carrier_follow_speed(struct iface *ifc, struct port_link link);
void carrier_poll(struct neigh *n);
/* Announce carriers to FRR. If there are many, the next round continues. */
void carrier_announce(struct neigh *n);
void carrier_set_missing(struct neigh *n); /* ports without a reported state: down */
void carrier_restore(struct neigh *n);     /* carriers of TAPs; once a second */
void carrier_log_pending(struct neigh *n); /* log pending changes, once a second */

/* --- device_link.c: the link of a device follows its TAP ------------------------------ */

/*
 * Set the link of the device as the TAP is set. A device that the driver cannot set down
 * keeps its link (logged).
 */
void carrier_follow_tap(struct iface *ifc, bool admin_up);
/*
 * Return `rc`, the result of setting something on a port's device or TAP. If it failed
 * because no descriptor was free, note that the settings are due.
 */
int device_result(struct iface *port, int rc);
/* Return true if a line about the link of a port may be logged now. */
bool carrier_log_allowed(struct iface *ifc);

/* --- vlan.c: VLANs and macvlans on ports and on VLANs ------------------------------- */

/*
 * Add the VLAN or macvlan `l` and return its number; 0 when it is not on our interfaces or
 * unsupported (logged).
 */
uint16_t vlan_add(struct neigh *n, const struct link *l);
/* Return true if the VLAN has the same interface below and the same tag as when added. */
bool vlan_is_same(const struct neigh *n, uint16_t ifidx, const struct kmon_link *kl);
/* Remove a VLAN that was deleted, or whose interface below was deleted. */
void vlan_remove(struct neigh *n, uint16_t ifidx);

/*
 * Return the first VLAN or macvlan on an interface, and the next one after `i` on the same
 * interface, in the order in which they were added; 0: none.
 */
static inline uint16_t
iface_first_on(struct neigh *n, uint16_t on)
{
	n->n_steps++;
	return n->iface[on].first_on;
}

static inline uint16_t
iface_next_on(struct neigh *n, uint16_t i)
{
	n->n_steps++;
	return n->iface[i].next_on;
}

/* --- vlan_table.c: numbers of interfaces, tables of VLANs and macvlans ---------------- */

/* Return a free number for a new VLAN or tunnel; 0: all are in use. */
uint16_t vlan_take_number(struct neigh *n);
/* Give back a number whose interface is gone, after a grace period. */
void vlan_retire_number(struct neigh *n, uint16_t ifidx);

/*
 * Return the table of VLANs and macvlans on an interface. It is never freed once created.
 * NULL: no memory.
 */
struct fib_vlans *vlan_table(struct neigh *n, uint16_t ifidx);

/* --- outer.c: the outer headers of tunnels -------------------------------------------- */

/* Return the kernel's word for the kind of a tunnel; NULL: the link is no tunnel. */
const char *tunnel_kind(const struct kmon_link *kl);
/* Return why forwarders cannot serve a tunnel; NULL: they can. */
const char *tunnel_refusal(const struct kmon_link *kl);
/* Write the tunnel's part of the copy for forwarders. */
void tunnel_copy(struct neigh *n, const struct iface *ifc, struct fib_iface *fi);

static inline bool
tunnel_is_gre(const struct kmon_tunnel *k)
{
	return k->kind == KMON_GRE || k->kind == KMON_IP6GRE;
}

/*
 * Set the VRF of the outer packets of a tunnel, and the link by which they must leave.
 * `dev` is the ifindex that the tunnel names; 0: none.
 */
void tunnel_below(struct neigh *n, uint32_t dev, uint16_t *vrf, uint32_t *link);
/* Return true if tunnel_below() now sets another VRF or link than `vrf` and `link`. */
bool tunnel_below_changed(struct neigh *n, uint32_t dev, uint16_t vrf, uint32_t link);

/* --- no_port.c: interfaces that are on no port ---------------------------------------- */

/*
 * Store the reason why the kernel keeps a tunnel, and log it once. `reason` is NULL if
 * forwarders serve the tunnel.
 */
void tunnel_refuse(struct neigh *n, struct link *l, const char *reason);
/* Make an interface without a port, and return its number; 0: no number is free. */
uint16_t tunnel_take_number(struct neigh *n, struct link *l);
/* Undo tunnel_take_number(). */
void tunnel_drop_number(struct neigh *n, uint16_t ifidx);

/* --- tunnel.c: tunnels ---------------------------------------------------------------- */

/*
 * Add a tunnel and return its number; 0: the link is no tunnel, or stays with the kernel
 * (logged once).
 */
uint16_t tunnel_add(struct neigh *n, struct link *l);
void tunnel_remove(struct neigh *n, uint16_t ifidx);
/* Publish tunnels whose link below has changed, and their table. Once per round. */
void tunnels_publish(struct neigh *n);

/* --- tunnel_table.c: the table of tunnels --------------------------------------------- */

/*
 * Enter a tunnel that was published into the table by which received packets find their
 * tunnel. `old`: the former copy, or NULL.
 */
void tunnel_enter(struct neigh *n, const struct fib_iface *old, const struct fib_iface *fi);
/* Publish the table again if tunnel_enter() could not update it. */
void tunnels_renew(struct neigh *n);

/* --- vxlan.c: bridges over a vxlan device --------------------------------------------- */

/* Handle a vxlan device that was added or changed. */
void vxlan_note(struct neigh *n, struct link *l);
/*
 * Add a bridge, or a VLAN on one, and return its number; 0: it is not over a vxlan device
 * that forwarders serve.
 */
uint16_t svi_add(struct neigh *n, struct link *l);
/* Return true if the interface is still over the same vxlan device, with the same VNI. */
bool svi_is_same(struct neigh *n, const struct link *l);
void svi_remove(struct neigh *n, uint16_t ifidx);
/* Store that a VLAN of a bridge has a VNI, or has lost it. */
void vni_update(struct neigh *n, const struct kmon_vni *kv, bool gone);
void vnis_free(struct neigh *n);
void fdb_event(void *ctx, const struct kmon_fdb *kf, bool gone);
bool fdb_wanted(void *ctx, unsigned int ifindex);
/*
 * Make the headers of neighbors again, after all interfaces are published. Once per round.
 */
void svis_apply(struct neigh *n);
/* Publish interfaces whose link below has changed, and their table. Once per round. */
void vxlans_publish(struct neigh *n);

/* --- vxlan_table.c: the table of interfaces over VXLAN -------------------------------- */

/*
 * Enter an interface that was published into the table by which received packets find their
 * interface, and take its former copy out. `old`: that copy, or NULL.
 */
void svi_enter(struct neigh *n, const struct fib_iface *old, const struct fib_iface *fi);
/* Publish the table again if svi_enter() could not update it. */
void vxlans_renew(struct neigh *n);

/* Handle the neighbors of an SVI at the end of the round. */
static inline void
svi_note_due(struct neigh *n, uint16_t ifidx)
{
	struct iface *ifc = &n->iface[ifidx];

	if (ifc->svi_due || !ifc->svi)
		return;
	ifc->svi_due = true;
	n->svi_due[n->n_svis_due++] = ifidx;
}

/*
 * Count a link in n_kernels_vxlan if it has, or may have, VNIs that forwarders do not
 * serve.
 */
static inline void
link_count_vxlan(struct neigh *n, struct link *l)
{
	bool is = l->known && l->kernel.tunnel.kind == KMON_VXLAN &&
		  (l->tunnel_refused != NULL || l->kernel.tunnel.external);

	n->n_kernels_vxlan += is;
	n->n_kernels_vxlan -= l->kernels_vxlan;
	l->kernels_vxlan = is;
}

/* --- vxlan_hop.c: the headers of neighbors behind a VXLAN ----------------------------- */

/* Write the VXLAN part of the copy for forwarders. */
void svi_copy(struct neigh *n, const struct iface *ifc, struct fib_iface *fi);
/*
 * Compare the copy of an interface over VXLAN with the old copy: its neighbors may need new
 * headers.
 */
void svi_note(struct neigh *n, uint16_t ifidx, const struct fib_iface *old,
	      const struct fib_iface *fi);
/*
 * Make the headers of a neighbor again, before nb_publish(). Not `usable`: the neighbor
 * gets no headers.
 */
void nb_renew_hop(struct neigh *n, struct nb *nb, bool usable);
void nb_free_hop(struct nb *nb);
/* Store the adjacency word of a neighbor, or its headers, in an adjacency. */
void nb_publish(struct neigh *n, const struct nb *nb, uint32_t adj, uint64_t hop);

/* --- macvlan.c: the MACs of macvlans ------------------------------------------------- */

/*
 * Enter a macvlan on interface `on` that was published into the table by which received
 * frames find it, and take its former copy out. `old`: that copy, or NULL.
 */
void macvlan_enter(struct neigh *n, uint16_t on, const struct fib_iface *old,
		   const struct fib_iface *fi);
/* Publish again, once per round, the tables that macvlan_enter() could not update. */
void macvlan_publish(struct neigh *n);
/* Note that an interface on a port has the MAC of ifc->kernel. */
void mac_hold(struct neigh *n, struct iface *ifc);
/* Undo mac_hold(), before the interface is removed. */
void mac_release(struct iface *ifc);
/* Let the device accept frames to the MAC of a macvlan, in place of its former MAC. */
void macvlan_set_mac(struct neigh *n, uint16_t ifidx);
/* Undo macvlan_set_mac(), before the macvlan is removed. */
void macvlan_forget_mac(struct neigh *n, uint16_t ifidx);

/* --- vrf.c: VRFs of the kernel and their numbers -------------------------------------- */

/* Update the number of link `l`, which is or was a VRF. */
void vrf_update(struct neigh *n, struct link *l);
/* Publish ifindex and rp_filter of the VRF device from which a VRF number has its name. */
void vrf_device_publish(struct neigh *n, uint16_t number);
/* Drop a VRF's reference to its number, after its members have left. */
void vrf_release(struct neigh *n, uint16_t number);
/* Return the value of fib_iface.vrf for a link. */
uint16_t vrf_of(struct neigh *n, const struct link *l);

/* --- table.c: neighbor records -------------------------------------------------------- */

struct nb *nb_find(const struct neigh *n, uint16_t ifidx, uint8_t family,
		   const struct ipaddr *addr);
/* Find or create a record; NULL when the table is full. */
struct nb *nb_get(struct neigh *n, uint16_t ifidx, uint8_t family,
		  const struct ipaddr *addr);
/* Free a record that is no longer used. */
void nb_release(struct neigh *n, struct nb *nb);
void nb_free_all(struct neigh *n);
/*
 * Return true if forwarders may send packets to the neighbor: its MAC is usable, or
 * `grace`.
 */
bool nb_usable(const struct neigh *n, const struct nb *nb);
/* Return the adjacency word of `nb`; 0: it is not usable. */
uint64_t nb_hop(const struct neigh *n, const struct nb *nb);
/* Request `nb` from the kernel at the end of this round. */
void nb_ask(struct neigh *n, struct nb *nb);

/* --- adjacency.c: neighbor events, and watched next hops ------------------------------ */

void neigh_event(void *ctx, const struct kmon_neigh *kn, bool gone);
/* Update the adjacencies, the host and the waiting packets of `nb`; may free it. */
void nb_apply(struct neigh *n, struct nb *nb);
/* Call nb_apply() for all neighbors of an interface whose state or IPv6 has changed. */
void nb_apply_iface(struct neigh *n, uint16_t ifidx);
/* Forget the kernel's entries of an interface that is about to be removed. */
void nb_forget_iface(struct neigh *n, uint16_t ifidx);
void nb_ask_flush(struct neigh *n);
void nb_retry(struct neigh *n);
void watch_add(struct neigh *n, struct msg_adj *m); /* replies with m */
/* Stop the watch. Replies with m. */
void watch_remove(struct neigh *n, struct msg_adj *m);

/* --- hosts.c: neighbors of connected subnets ------------------------------------------ */

/* Publish, update or (hop 0) withdraw the host of `nb`. */
void host_apply(struct neigh *n, struct nb *nb, uint64_t hop);
/*
 * Call host_apply() with the state of `nb`, then reply to punt, if packets wait for `nb`.
 */
void host_update(struct neigh *n, struct nb *nb);
/* Return true if packets were sent to the host since the sweep before last. */
bool host_in_use(const struct neigh *n, const struct nb *nb);
void host_sweep(struct neigh *n);

/* --- glean.c: packets that wait for a neighbor ---------------------------------------- */

void glean_ask(struct neigh *n, const struct msg_neigh *m);
void glean_over(struct neigh *n, const struct msg_neigh *m);
/* Reply to punt if packets wait for `nb`. */
void glean_answer(struct neigh *n, struct nb *nb, bool resolved);
void glean_expire(struct neigh *n);

/* --- query.c -------------------------------------------------------------------------- */

/* Answer a query. Replies with q. */
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
