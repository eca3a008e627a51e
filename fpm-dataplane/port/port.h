/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port: a DPDK port and its TAP; no thread of its own.
 *
 * ifidx is the port's number in the tables (1..): index into fib->iface and the counters. All
 * threads share one array, in which port number n has slot n - 1. Only main at start and
 * manage later put ports there and take them out; a slot whose ifidx is 0 is empty. Readers
 * are under QSBR: a port that one has seen stays whole until its next quiescent state.
 */
#ifndef PORT_PORT_H
#define PORT_PORT_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/counters.h"
#include "base/port_options.h"
#include "port/bond.h"
#include "port/fanout.h"
#include "tap-bridge/tap.h"

struct rte_mempool;

/* Without pointers: it is sent to the process that keeps NICs (port/nicd_client.h) as it is. */
struct port_conf {
	char tap[IFNAMSIZ]; /* name */
	char netns[64];     /* of the TAP, "": ours */
	char device[256];   /* devargs or PCI address */
	int tap_fd;         /* of the TAP, from an earlier life (taken over); -1: none */
	unsigned int mtu_bytes;
	unsigned int n_rxq; /* 0: n_txq */
	unsigned int n_txq; /* forwarders: one transmit queue each */
	struct port_options options;
	bool interrupts; /* of receive queues: wanted */
	bool shared;     /* other processes share DPDK, and attach it when it has queues */
	uint32_t place;  /* among the ports there are; 0: as its number */
};

struct port {
	uint16_t ifidx;
	uint32_t place; /* the order in which people see ports: that in which they came */
	uint16_t port_id;
	uint16_t n_rxq, n_txq;
	uint8_t mac[6];
	unsigned int mtu_bytes;     /* at start */
	unsigned int mtu_max_bytes; /* that the device and a packet buffer can take */
	char name[IFNAMSIZ];        /* of the TAP */
	char device[256];           /* as configured */
	char driver[32];            /* "net_af_packet" */
	char kernel_if[IFNAMSIZ];   /* interface behind the port (iface=), "" for none */
	bool held;                  /* by the process that keeps NICs: port/nicd_client.h */
	enum bond_mode bond;        /* of several NICs: port/bond.h */
	int node;                   /* NUMA node of the device, -1: unknown */
	uint64_t rss_hf;            /* what it hashes over its queues, RTE_ETH_RSS_ ... */
	bool rss_untold;            /* ... as it was asked to: its driver does not tell */
	bool cksum_able;            /* it could verify IPv4 header checksums ... */
	bool rx_cksum;              /* ... and does */
	bool vlan_able;             /* it could take tags off and put them in ... */
	bool vlan_offload;          /* ... and may: see port_take_tags() */
	bool interrupts;            /* it may have them, a queue each */
	unsigned int n_socket;
	int socket[FANOUT_QUEUES]; /* behind each queue, of net_af_packet */
	struct if_counters base;   /* of its number, when it came: not its own */
	bool tap_kept;             /* its descriptor is from an earlier life */
	bool tap_new;              /* made when the port was opened, not found */
	struct tap tap;            /* W:punt after start, but the number of its fd stays */
	struct rte_mempool *pool;  /* packet buffers, of all ports alike */
};

#define PORT_SLOTS (PORT_MAX - 1)

/* Is there a port in the slot? What it says may then be read.              [RCU reader] */
static inline bool
port_is_there(const struct port *slot)
{
	/* Acquire: who sees the number sees the rest. */
	return __atomic_load_n(&slot->ifidx, __ATOMIC_ACQUIRE) != 0;
}

/*
 * Must a port that was opened with options `was` be opened again to have options `now`? An
 * option that its device lacks makes no difference.
 */
static inline bool
port_options_differ(const struct port *port, const struct port_options *was,
		    const struct port_options *now)
{
	return (was->vlan_off != now->vlan_off && port->vlan_able) ||
	       (was->cksum_off != now->cksum_off && port->cksum_able);
}

#define PORT_STATS_QUEUES 16 /* that DPDK tells apart */

struct port_stats { /* of the device itself */
	uint64_t rx_packets, rx_bytes, rx_missed, rx_errors, rx_nombuf;
	uint64_t tx_packets, tx_bytes, tx_errors;
	/* Frames of each of the first queues; 0: the driver counts none by queue. */
	unsigned int n_queue;
	uint64_t queue_rx_packets[PORT_STATS_QUEUES];
};

/*
 * Attach, configure and start one port, open its TAP.                            [main]
 * Returns 0 or -errno with everything undone; `why` gets one sentence on failure.
 */
int port_open(struct port *port, uint16_t ifidx, const struct port_conf *conf,
	      struct rte_mempool *pool, char *why, unsigned int why_size);

/*
 * Could its device be opened again with so many receive queues (0: as many as there are
 * forwarders, or fewer), and that MTU? Returns 0, or
 * -EINVAL with a sentence in `why`.                                             [manage]
 */
int port_could_be(const struct port *port, unsigned int n_rxq, unsigned int mtu_bytes,
		  char *why, unsigned int why_size);

/* Put an opened port into its empty slot, where all can see it.          [main, manage] */
void port_publish(struct port *slot, const struct port *port);

/* Can the device be open twice at a time, each getting all frames?      [any thread] */
bool port_is_shared(const char *device);

/* Throw away what waits in a shared port's queues, before a forwarder has begun.  [main] */
void port_discard(const struct port *port);

/* Stop and close the port and its device, but one that is kept; the TAP stays, detached. */
void port_close(struct port *port);

/* Device statistics. Returns 0 or -errno.                              [any thread] */
int port_stats(const struct port *port, struct port_stats *st);

/* Packet buffers there are, and how many of them nobody holds.         [any thread] */
void port_buffers(const struct port *port, unsigned int *n, unsigned int *n_free);
/* Are there none left for who needs one?                               [any thread] */
bool port_buffers_short(const struct port *port);

/*
 * What the port hashes over its queues, as the device said after its start, in words:
 * "ip tcp udp"; "none"; "unknown": its driver does not tell.            [any thread]
 */
const char *port_rss(const struct port *port, char buf[64]);

/*
 * Link state as the device tells it (af_packet always says up); a bond of 802.3ad has one while
 * LACP lets packets leave.                                             [any thread]
 */
bool port_link_up(const struct port *port);

/*
 * What the device lets in beside frames to its MAC, as its driver took it: all frames, or all
 * that are for groups.                                                 [any thread]
 */
bool port_takes_all(const struct port *port);
bool port_takes_groups(const struct port *port);

/* How the members of a bond are now. Returns 0 or -errno.             [any thread] */
int port_bond(const struct port *port, struct bond_state *state);

/*
 * Give the device a new MTU or MAC; -ENOTSUP where it cannot, -EBUSY for more than it started
 * with where that is its limit.                                        [neigh]
 */
int port_set_mtu(const struct port *port, unsigned int mtu_bytes);

/* Is it such a limit, and this more? Then the device has to be opened anew.      [manage] */
bool port_mtu_is_beyond(const struct port *port, unsigned int mtu_bytes);
int port_set_mac(const struct port *port, const uint8_t mac[6]);

/*
 * From here on the device takes the first tag off each frame that has one of type 802.1Q, until
 * it is closed, and puts such a tag into each that is sent with one beside it. False: not this
 * device, or its driver refuses; nothing has changed.                   [neigh]
 */
bool port_take_tags(const struct port *port);

/* Have the device accept frames to one more MAC, or to any where it cannot. */
int port_add_mac(const struct port *port, const uint8_t mac[6]);

#endif
