/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port: a DPDK port and its TAP. It has no thread of its own.
 *
 * ifidx is the number of the port in the tables, from 1: the index into fib->iface and the
 * counters. All threads share one array, in which port number n has slot n - 1. Only main
 * at the start, and manage later, add and remove ports. A slot whose ifidx is 0 is empty.
 * Readers are under QSBR: a port that a reader has seen stays valid until the reader's next
 * quiescent state.
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

/*
 * No pointers: the structure is sent as it is to the process that keeps NICs
 * (nicd_client.h).
 */
struct port_conf {
	char tap[IFNAMSIZ]; /* name */
	char netns[64];     /* of the TAP, "": ours */
	char device[256];   /* devargs or PCI address */
	int tap_fd; /* descriptor of the TAP that the predecessor passed on; -1: none */
	unsigned int mtu_bytes;
	unsigned int n_rxq; /* 0: n_txq, or fewer if the device has fewer */
	unsigned int n_txq; /* number of forwarders; one transmit queue each */
	struct port_options options;
	bool interrupts; /* interrupts of receive queues are wanted */
	bool shared;     /* processes share DPDK: attach the device in this one only */
	uint32_t place;  /* number in the order in which ports are shown; 0: ifidx */
};

struct port_link {
	bool up; /* af_packet: always. A bond of 802.3ad: while LACP lets packets leave */
	bool full_duplex;
	uint32_t mbit_per_s; /* 0: the driver does not know, or the link is down */
};

struct port {
	uint16_t ifidx;
	uint32_t place; /* number in the order in which ports were added and are shown */
	uint16_t port_id;
	uint16_t n_rxq, n_txq;
	uint8_t mac[6];
	unsigned int mtu_bytes;     /* MTU at the start */
	unsigned int mtu_max_bytes; /* limit of the device and of a packet buffer */
	char name[IFNAMSIZ];        /* of the TAP */
	char device[256];           /* as configured */
	char driver[32];            /* in DPDK, for example "net_af_packet" */
	char kernel_if[IFNAMSIZ]; /* kernel interface behind the port (iface=); "": none */
	unsigned int kernel_ifindex; /* ... it may be renamed, and another get its name */
	int claim;                   /* descriptor of its claim (port/claim.h); -1: none */
	bool without_if;             /* W:neigh R:manage  kernel_if was deleted or moved */
	uint64_t link;               /* W:neigh R:any  see port_link_known() */
	bool held;                   /* fpm-nics keeps the device: port/nicd_client.h */
	enum bond_mode bond;         /* a bond of several NICs: port/bond.h */
	int node;                    /* NUMA node of the device, -1: unknown */
	uint64_t rss_hf;   /* RTE_ETH_RSS_ types that it hashes over its queues ... */
	bool rss_untold;   /* ... `rss_hf` was only requested: the driver reports none */
	bool cksum_able;   /* the device can verify IPv4 header checksums ... */
	bool rx_cksum;     /* ... and does */
	bool vlan_able;    /* the device can strip and insert tags ... */
	bool vlan_offload; /* ... and may, by its options: see port_take_tags() */
	bool interrupts;   /* the device was started with interrupts of receive queues */
	unsigned int n_socket;
	int socket[FANOUT_QUEUES]; /* socket behind each queue, of net_af_packet */
	struct if_counters base;   /* counters of its ifidx when it was added */
	/* a new number at each publication, because the counters begin at 0 */
	uint32_t opening;
	bool tap_kept;            /* port_open() got the descriptor of an existing TAP */
	bool tap_new;             /* the TAP was made by port_open() */
	struct tap tap;           /* W:punt after the start, except the number of its fd */
	struct rte_mempool *pool; /* packet buffers, the same for all ports */
};

#define PORT_SLOTS (PORT_MAX - 1)

/* Return true if the slot has a port. Its fields may then be read.          [RCU reader] */
static inline bool
port_is_there(const struct port *slot)
{
	/* Acquire: a reader that sees the number sees the other fields. */
	return __atomic_load_n(&slot->ifidx, __ATOMIC_ACQUIRE) != 0;
}

/* Publish the link of the port's device.                                        [neigh] */
static inline void
port_link_publish(struct port *port, struct port_link link)
{
	/* Relaxed: the word is all of the datum. */
	__atomic_store_n(&port->link,
			 (uint64_t)link.mbit_per_s << 32 | (uint64_t)link.full_duplex << 1 |
				 link.up,
			 __ATOMIC_RELAXED);
}

/* Return the link as neigh has read it last, without a system call.        [RCU reader] */
static inline struct port_link
port_link_known(const struct port *port)
{
	uint64_t link = __atomic_load_n(&port->link, __ATOMIC_RELAXED);

	return (struct port_link){.up = (link & 1) != 0,
				  .full_duplex = (link & 2) != 0,
				  .mbit_per_s = (uint32_t)(link >> 32)};
}

/* Return true if the kernel interface behind the port was deleted or moved away. */
static inline bool
port_is_without_if(const struct port *port)
{
	/* Relaxed: the flag stands alone. */
	return __atomic_load_n(&port->without_if, __ATOMIC_RELAXED);
}

/*
 * Return true if a port that was opened with options `was` must be opened again to have
 * options `now`. An option that its device lacks makes no difference.
 */
static inline bool
port_options_differ(const struct port *port, const struct port_options *was,
		    const struct port_options *now)
{
	return (was->vlan_off != now->vlan_off && port->vlan_able) ||
	       (was->cksum_off != now->cksum_off && port->cksum_able);
}

#define PORT_STATS_QUEUES 16 /* queues that DPDK counts separately */

struct port_stats { /* counters of the device */
	uint64_t rx_packets, rx_bytes, rx_missed, rx_errors, rx_nombuf;
	uint64_t tx_packets, tx_bytes, tx_errors;
	/*
	 * Frames of each of the first n_queue queues. n_queue 0: the driver does not count
	 * by queue.
	 */
	unsigned int n_queue;
	uint64_t queue_rx_packets[PORT_STATS_QUEUES];
};

/*
 * Attach, configure and start a port, and open its TAP. Returns 0, or -errno with
 * everything undone and a sentence in `why`.                             [main, manage]
 */
int port_open(struct port *port, uint16_t ifidx, const struct port_conf *conf,
	      struct rte_mempool *pool, char *why, unsigned int why_size);

/*
 * Check that the device can be opened again with `n_rxq` receive queues (0: as many as
 * forwarders, or fewer) and this MTU. Returns 0, or -EINVAL with a sentence in `why`.
 *                                                                              [manage]
 */
int port_could_be(const struct port *port, unsigned int n_rxq, unsigned int mtu_bytes,
		  char *why, unsigned int why_size);

/*
 * Turn IPv6 off on the kernel interface behind the port, if it has one, because the kernel
 * would reply in place of the port. Returns 1 if it was on, 0 if it was off, or -errno with
 * a sentence in `why`.                                      [thread in our own namespace]
 */
int port_quiet_kernel(const struct port *port, char *why, unsigned int why_size);

/*
 * Claim the kernel interface behind the port, when the predecessor no longer has it.
 *                                                           [thread in our own namespace]
 */
void port_claim(struct port *port);
/* Release the claim of the port, so that a successor can take it. */
void port_release(struct port *port);

/* Put an opened port into its empty slot, where all threads can see it.   [main, manage] */
void port_publish(struct port *slot, const struct port *port);

/*
 * Return true if two processes can have the device open at the same time and each receives
 * all frames.                                                              [any thread]
 */
bool port_is_shared(const char *device);

/* Discard the packets in a shared port's queues, before a forwarder has begun.    [main] */
void port_discard(const struct port *port);

/*
 * Stop and close the port and its device, unless fpm-nics keeps it. The TAP stays,
 * detached.
 */
void port_close(struct port *port);

/* Get the statistics of the device. Returns 0 or -errno.                    [any thread] */
int port_stats(const struct port *port, struct port_stats *st);

/* Get the number of packet buffers, and of the free ones.                   [any thread] */
void port_buffers(const struct port *port, unsigned int *n, unsigned int *n_free);
/* Return true if a thread that needs packet buffers may find none.          [any thread] */
bool port_buffers_short(const struct port *port);

/*
 * Describe the fields that the port hashes over its queues, as the device reported after
 * its start: "ip tcp udp"; "none"; "unknown" if its driver does not report it.
 *                                                                          [any thread]
 */
const char *port_rss(const struct port *port, char buf[64]);

/*
 * Ask the device for its link. The kernel may let the thread wait: it holds its lock of all
 * links while it answers for the device of a kernel interface. [neigh, manage, fpm-nics]
 */
struct port_link port_link(const struct port *port);

static inline bool
port_link_up(const struct port *port)
{
	return port_link(port).up;
}

/*
 * Return true if the driver has enabled that the device receives all frames, or all group
 * frames, beside the frames to its MAC.                                    [any thread]
 */
bool port_takes_all(const struct port *port);
bool port_takes_groups(const struct port *port);

/* Get the state of a bond's members. Returns 0 or -errno.                   [any thread] */
int port_bond(const struct port *port, struct bond_state *state);

/*
 * Set the MTU of the device, or with port_set_mac() its MAC. Returns 0 or -errno: -ENOTSUP
 * if the device cannot; -EBUSY if it cannot exceed the MTU that it started with.
 *                                                                               [neigh]
 */
int port_set_mtu(const struct port *port, unsigned int mtu_bytes);

/*
 * Return true if the device cannot exceed the MTU that it started with, and `mtu_bytes`
 * exceeds it. Then the device has to be opened again.                          [manage]
 */
bool port_mtu_is_beyond(const struct port *port, unsigned int mtu_bytes);
int port_set_mac(const struct port *port, const uint8_t mac[6]);

/*
 * Set the link of the device up, or down so that the other end loses its link. For a port
 * with a kernel interface, set the state of that interface. Returns 0 or -errno; -ENOTSUP if
 * the driver cannot.                                                            [neigh]
 */
int port_set_link(const struct port *port, bool up);

/*
 * Let the device strip the first tag of each frame, if it is of type 802.1Q, until it is
 * closed, and insert such a tag into frames that ask for it in their mbuf. Returns false,
 * and has changed nothing, if the device or its driver does not do this.        [neigh]
 */
bool port_take_tags(const struct port *port);

/* Let the device accept frames to one more MAC, or all frames if it cannot. */
int port_add_mac(const struct port *port, const uint8_t mac[6]);
/* Undo port_add_mac(). A device that receives all frames continues to do so.     [neigh] */
void port_remove_mac(const struct port *port, const uint8_t mac[6]);

#endif
