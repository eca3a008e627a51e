/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nic: open, configure, start, stop and close the device of a port. Runs in main at the
 * start, in manage later, or in fpm-nics (nicd/server.c). A virtual device may be unable to
 * turn promiscuous mode off, or to set its MAC or MTU; this is tolerated. A device that
 * lacks a required feature is refused with a sentence.
 */
#include "port/nic.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>

#include "base/log.h"
#include "base/errmsg.h"
#include "pci/kernel_if.h"
#include "pci/vhost.h"
#include "port/attach.h"
#include "port/rss.h"

pthread_mutex_t nic_control[RTE_MAX_ETHPORTS] = {
	[0 ... RTE_MAX_ETHPORTS - 1] = PTHREAD_MUTEX_INITIALIZER,
};

#define TX_DESC 1024

/*
 * Make the devargs for the EAL. A virtual device needs a name of its own: "net_af_packet"
 * becomes "net_af_packet_wan0". af_packet needs a queue pair per forwarder and room for
 * bursts. vhost gets linear-buffer: a frame of a guest then has one buffer, as with any
 * NIC. Without it a guest may claim any length, and use up all buffers.
 */
static void
devargs_make(char *out, size_t size, char *name, size_t name_size,
	     const struct port_conf *conf)
{
	const char *args = strchr(conf->device, ',');
	size_t n = args != NULL ? (size_t)(args - conf->device) : strlen(conf->device);
	bool vdev = strncmp(conf->device, "net_", 4) == 0;
	bool numbered = n > 0 && conf->device[n - 1] >= '0' && conf->device[n - 1] <= '9';

	if (vdev && !numbered)
		snprintf(name, name_size, "%.*s_%s", (int)n, conf->device, conf->tap);
	else
		snprintf(name, name_size, "%.*s", (int)n, conf->device);
	n = (size_t)snprintf(out, size, "%s%s", name, args != NULL ? args : "");
	if (n < size && strncmp(name, "net_vhost", 9) == 0 &&
	    strstr(out, "linear-buffer=") == NULL)
		snprintf(out + n, size - n, ",linear-buffer=1");
	if (strncmp(name, "net_af_packet", 13) != 0 || n >= size)
		return;
	if (strstr(out, "qpairs=") == NULL)
		n += (size_t)snprintf(out + n, size - n, ",qpairs=%u", conf->n_txq);
	if (n < size && strstr(out, "framecnt=") == NULL)
		snprintf(out + n, size - n, ",framecnt=%u", NIC_AF_PACKET_FRAMES);
}

/*
 * Devices that may strip and insert VLAN tags. DPDK reports the offloads of a port, but not
 * whether the device or its driver does the work, nor the cost. So this function chooses by
 * the name of the driver, according to the driver's source (22.11) and to trials.
 *
 * These drivers are left out. net_virtio, net_vhost and net_af_packet do the work in
 * software, later than forwarders do it. net_vmxnet3 strips 802.1ad tags too, and does not
 * distinguish them from 802.1Q (in QEMU). net_ixgbe and net_i40e use a slower transmit loop
 * as soon as they may insert tags, with VLANs or without. net_ixgbe also delivers frames
 * without their tag and without its TCI while stripping begins. net_e1000_igb looks like
 * net_e1000_em in its source, but has not been tried. A running net_bonding does not pass
 * the setting on to its members.
 */
bool
nic_takes_tags(const struct rte_eth_dev_info *info)
{
	return strcmp(info->driver_name, "net_e1000_em") == 0 &&
	       (info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_VLAN_STRIP) != 0 &&
	       (info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_VLAN_INSERT) != 0;
}

/*
 * Return true if the device keeps the MTU that it starts with. The vmxnet3 driver (22.11)
 * changes the MTU of a running device by stopping it while forwarders poll it, and leaves
 * it marked as stopped: its link is never read again. The driver of e1000e accepts a new
 * MTU, but long frames do not come in (tests/vm/test_nic.py, QEMU). Shorter frames need no
 * change of the device.
 */
static bool
nic_mtu_is_fixed(const struct port *port)
{
	return strcmp(port->driver, "net_vmxnet3") == 0 ||
	       strcmp(port->driver, "net_e1000_em") == 0;
}

/*
 * Return true if `mtu_bytes` exceeds the present MTU of the device. Call this with
 * nic_control held.
 */
static bool
nic_mtu_is_more(const struct port *port, unsigned int mtu_bytes)
{
	uint16_t now;

	return rte_eth_dev_get_mtu(port->port_id, &now) == 0 && mtu_bytes > now;
}

bool
nic_mtu_is_beyond(const struct port *port, unsigned int mtu_bytes)
{
	bool beyond;

	pthread_mutex_lock(&nic_control[port->port_id]);
	beyond = nic_mtu_is_fixed(port) && nic_mtu_is_more(port, mtu_bytes);
	pthread_mutex_unlock(&nic_control[port->port_id]);
	return beyond;
}

int
nic_check_name(const struct port *port)
{
	char name[IF_NAMESIZE];
	int ifindex;

	kernel_if_of(port->device, name);
	if (name[0] == '\0')
		return 0;
	ifindex = kernel_if_index(name);
	if (ifindex < 0)
		return ifindex;
	return (unsigned int)ifindex == port->kernel_ifindex ? 0 : -ENODEV;
}

int
nic_set_mtu(const struct port *port, unsigned int mtu_bytes)
{
	int rc = nic_check_name(port);

	if (rc < 0)
		return rc;
	pthread_mutex_lock(&nic_control[port->port_id]);
	if (nic_mtu_is_fixed(port))
		rc = nic_mtu_is_more(port, mtu_bytes) ? -EBUSY : 0;
	else
		rc = rte_eth_dev_set_mtu(port->port_id, (uint16_t)mtu_bytes);
	pthread_mutex_unlock(&nic_control[port->port_id]);
	return rc;
}

int
nic_set_link(const struct port *port, bool up)
{
	int rc;

	if (port->kernel_if[0] != '\0')
		return kernel_if_set_up(port->kernel_ifindex, up);
	pthread_mutex_lock(&nic_control[port->port_id]);
	if (port->bond != BOND_NONE)
		rc = bond_set_link(port->port_id, up);
	else
		rc = up ? rte_eth_dev_set_link_up(port->port_id)
			: rte_eth_dev_set_link_down(port->port_id);
	pthread_mutex_unlock(&nic_control[port->port_id]);
	return rc;
}

/*
 * Room in a buffer beside an IP packet: Ethernet header, two VLAN tags, checksum, reserve.
 */
#define L2_ROOM_BYTES 64

/*
 * Return the largest MTU of a device as rte_eth_dev_set_mtu() computes it. A driver reports
 * the longest frame. If it reports a largest MTU too, the difference of the two is its
 * overhead.
 */
static unsigned int
device_mtu_max(const struct rte_eth_dev_info *info)
{
	uint32_t frame = info->max_rx_pktlen,
		 overhead = RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN;

	if (info->max_mtu != UINT16_MAX && frame > info->max_mtu)
		overhead = frame - info->max_mtu;
	frame = frame > overhead ? frame - overhead : 0;
	return frame < info->max_mtu ? frame : info->max_mtu;
}

/*
 * Configure and start the device with the queue numbers of *port. Returns 0 or -errno with
 * the reason in `why`.
 */
static int
device_start(const struct port *port, const struct rte_eth_conf *eth,
	     struct rte_mempool *pool, char *why, unsigned int why_size)
{
	int rc = rte_eth_dev_configure(port->port_id, port->n_rxq, port->n_txq, eth);

	if (rc < 0)
		return why_not(why, why_size, rc, "device refuses its configuration: %s",
			       rte_strerror(-rc));
	for (uint16_t q = 0; q < port->n_rxq && rc >= 0; q++)
		rc = rte_eth_rx_queue_setup(port->port_id, q, NIC_RX_DESC, SOCKET_ID_ANY,
					    NULL, pool);
	for (uint16_t q = 0; q < port->n_txq && rc >= 0; q++)
		rc = rte_eth_tx_queue_setup(port->port_id, q, TX_DESC, SOCKET_ID_ANY, NULL);
	if (rc < 0)
		return why_not(why, why_size, rc, "device refuses a queue: %s",
			       rte_strerror(-rc));
	rc = rte_eth_dev_start(port->port_id);
	if (rc < 0)
		return why_not(why, why_size, rc, "device does not start: %s",
			       rte_strerror(-rc));
	return 0;
}

/* Return true if the device, or a member of the bond, has this driver. */
static bool
nic_is_driven_by(const struct port *port, const char *driver)
{
	return port->bond != BOND_NONE ? bond_has_driver(port->port_id, driver)
				       : strcmp(port->driver, driver) == 0;
}

static int
nic_check_limits(const struct port *port, const struct rte_eth_dev_info *info,
		 unsigned int n_rxq, unsigned int mtu_bytes, char *why,
		 unsigned int why_size)
{
	if (mtu_bytes > port->mtu_max_bytes)
		return why_not(why, why_size, -EINVAL,
			       "mtu %u is more than the device (%s) takes: %u at most",
			       mtu_bytes, port->driver, port->mtu_max_bytes);
	if (n_rxq > info->max_rx_queues)
		return why_not(why, why_size, -EINVAL,
			       "device has %u receive queue%s, not %u", info->max_rx_queues,
			       info->max_rx_queues == 1 ? "" : "s", n_rxq);
	return 0;
}

int
nic_could_be(const struct port *port, unsigned int n_rxq, unsigned int mtu_bytes, char *why,
	     unsigned int why_size)
{
	struct rte_eth_dev_info info;
	int rc;

	pthread_mutex_lock(&nic_control[port->port_id]);
	rc = rte_eth_dev_info_get(port->port_id, &info);
	pthread_mutex_unlock(&nic_control[port->port_id]);
	if (rc < 0)
		return 0; /* the open reports the error */
	return nic_check_limits(port, &info, n_rxq, mtu_bytes, why, why_size);
}

/* Set the largest MTU that the device and the buffers of `pool` both allow. */
static void
nic_mtu_max_set(struct port *port, const struct rte_eth_dev_info *info,
		struct rte_mempool *pool)
{
	unsigned int room =
		rte_pktmbuf_data_room_size(pool) - RTE_PKTMBUF_HEADROOM - L2_ROOM_BYTES;

	port->mtu_max_bytes = device_mtu_max(info);
	if (port->mtu_max_bytes > room)
		port->mtu_max_bytes = room;
}

/*
 * Choose the numbers of queues. Returns 0, or -EINVAL with the reason in `why` if the
 * device has too few queues or cannot have the configured MTU.
 */
static int
nic_queues_choose(struct port *port, const struct port_conf *conf,
		  const struct rte_eth_dev_info *info, char *why, unsigned int why_size)
{
	port->n_txq = (uint16_t)conf->n_txq;
	port->n_rxq = (uint16_t)(conf->n_rxq != 0 ? conf->n_rxq : conf->n_txq);
	if (info->max_tx_queues < port->n_txq)
		return why_not(
			why, why_size, -EINVAL,
			"device has %u transmit queue%s, %u forwarding cores need one each",
			info->max_tx_queues, info->max_tx_queues == 1 ? "" : "s",
			port->n_txq);
	if (conf->n_rxq == 0 && port->n_rxq > info->max_rx_queues)
		port->n_rxq = info->max_rx_queues;
	/*
	 * The kernel spreads frames over all queues of a fanout group, so all must be read.
	 */
	if (strcmp(port->driver, "net_af_packet") == 0 && port->n_rxq < info->max_rx_queues)
		port->n_rxq = info->max_rx_queues;
	/* Queues of virtio come in pairs. The host spreads frames over all pairs in use. */
	if (nic_is_driven_by(port, "net_virtio") && port->n_rxq < port->n_txq)
		port->n_rxq = port->n_txq;
	return nic_check_limits(port, info, port->n_rxq, conf->mtu_bytes, why, why_size);
}

/* Choose the offloads, which are checksums, VLAN tags and RSS, and write them to *eth. */
static void
nic_offloads_choose(struct port *port, const struct port_conf *conf,
		    const struct rte_eth_dev_info *info, struct rte_eth_conf *eth)
{
	port->cksum_able = (info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_IPV4_CKSUM) != 0;
	port->rx_cksum = port->cksum_able && !conf->options.cksum_off;
	if (port->rx_cksum)
		eth->rxmode.offloads |= RTE_ETH_RX_OFFLOAD_IPV4_CKSUM;
	port->vlan_able = nic_takes_tags(info);
	port->vlan_offload = port->vlan_able && !conf->options.vlan_off;
	if (port->vlan_offload)
		eth->txmode.offloads |= RTE_ETH_TX_OFFLOAD_VLAN_INSERT;
	rss_request(port, info, eth);
}

/*
 * Start the device, with interrupts if they are configured and the device can have them.
 * Returns 0 or -errno with the reason in `why`.
 */
static int
nic_start(struct port *port, const struct port_conf *conf, struct rte_eth_conf *eth,
	  struct rte_mempool *pool, char *why, unsigned int why_size)
{
	int rc;

	/*
	 * A bond has no interrupts, because an interrupt of a member reports one NIC only.
	 * uio has none per queue.
	 */
	eth->intr_conf.rxq = port->interrupts = conf->interrupts &&
						port->bond == BOND_NONE &&
						!attach_is_by_uio(port->port_id);
	rc = device_start(port, eth, pool, why, why_size);
	if (rc < 0 && port->interrupts) {
		/* Some drivers without interrupts fail when they are asked for them. */
		eth->intr_conf.rxq = port->interrupts = false;
		rc = device_start(port, eth, pool, why, why_size);
	}
	return rc;
}

/* Request the frames that the port needs beside the frames for its MAC. */
static void
nic_filters_open(const struct port *port)
{
	/*
	 * The host drops frames with a tag that was not announced (QEMU:
	 * VIRTIO_NET_F_CTRL_VLAN, which the driver always negotiates), unless the device is
	 * promiscuous. The parser drops frames for other MACs.
	 */
	if (nic_is_driven_by(port, "net_virtio") &&
	    rte_eth_promiscuous_enable(port->port_id) < 0)
		log_debug("port: promiscuous mode not supported port=%s", port->name);
	/* OSPF, ND and others use multicast. Virtual devices often have no filter. */
	if (rte_eth_allmulticast_enable(port->port_id) < 0)
		log_debug("port: allmulticast not supported port=%s", port->name);
}

/* Configure and start an attached device. Returns 0 or -errno with the reason in `why`. */
static int
nic_configure(struct port *port, const struct port_conf *conf, struct rte_mempool *pool,
	      char *why, unsigned int why_size)
{
	struct rte_eth_conf eth = {.rxmode = {.mtu = (uint16_t)conf->mtu_bytes}};
	struct rte_eth_dev_info info;
	struct rte_ether_addr mac;
	int rc = rte_eth_dev_info_get(port->port_id, &info);

	if (rc < 0)
		return why_not(why, why_size, rc, "device reports no information");
	snprintf(port->driver, sizeof(port->driver), "%s", info.driver_name);
	port->node = rte_eth_dev_socket_id(port->port_id);
	nic_mtu_max_set(port, &info, pool);
	rc = nic_queues_choose(port, conf, &info, why, why_size);
	if (rc < 0)
		return rc;
	nic_offloads_choose(port, conf, &info, &eth);
	/*
	 * Check the memory first, because a bond that starts sets up the queues of its
	 * members, and their links may be up.
	 */
	if (port->bond == BOND_LACP)
		rc = bond_room(port->n_txq * TX_DESC,
			       (unsigned int)port->n_rxq + port->n_txq, why, why_size);
	if (rc == 0)
		rc = nic_start(port, conf, &eth, pool, why, why_size);
	if (rc < 0)
		return rc;
	rss_read_back(port);
	rc = rte_eth_macaddr_get(port->port_id, &mac);
	if (rc < 0)
		return why_not(why, why_size, rc, "device has no MAC address");
	memcpy(port->mac, mac.addr_bytes, sizeof(port->mac));
	if (nic_set_mtu(port, conf->mtu_bytes) < 0)
		log_debug("port: mtu not set port=%s mtu=%u", port->name, conf->mtu_bytes);
	nic_filters_open(port);
	return 0;
}

/*
 * Close the device and detach it, so that it can be attached again, with other devargs too.
 */
void
nic_close(const struct port *port)
{
	uint16_t port_id = port->port_id;
	struct rte_eth_dev_info info;
	struct rte_device *device =
		rte_eth_dev_info_get(port_id, &info) == 0 ? info.device : NULL;

	pthread_mutex_lock(&nic_control[port_id]);
	if (port->bond != BOND_NONE) {
		bond_close(port_id);
		device = NULL;
	} else {
		rte_eth_dev_stop(port_id);
		rte_eth_dev_close(port_id);
	}
	pthread_mutex_unlock(&nic_control[port_id]);
	if (device != NULL && rte_dev_remove(device) < 0)
		log_debug("port: device not removed port=%u", port_id);
}

/* Attach a device that is no bond. Returns 0 or -errno with the reason in `why`. */
static int
device_attach(struct port *port, const char *devargs, const char *name, bool shared,
	      char *why, unsigned int why_size)
{
	struct fanout_seen sockets;
	int rc;

	rc = listener_prepare(devargs, why, why_size);
	if (rc < 0)
		return rc;
	fanout_learn(&sockets);
	rc = (shared ? attach_here : attach)(devargs, name, &port->port_id, why, why_size);
	fanout_learn(NULL);
	port->n_socket = sockets.n;
	memcpy(port->socket, sockets.fd, sizeof(port->socket));
	return rc;
}

/* Attach and start the device. Returns 0 or -errno, with everything undone. */
int
nic_open(struct port *port, const struct port_conf *conf, struct rte_mempool *pool,
	 char *why, unsigned int why_size)
{
	char devargs[512], name[64];
	int rc;

	devargs_make(devargs, sizeof(devargs), name, sizeof(name), conf);
	if (device_is_bond(conf->device))
		rc = bond_open(name, conf->device, &port->port_id, &port->bond, why,
			       why_size);
	else
		rc = device_attach(port, devargs, name, conf->shared, why, why_size);
	if (rc < 0)
		return rc;
	rc = nic_configure(port, conf, pool, why, why_size);
	/* The device has used memory that earlier bonds may need. */
	if (rc == 0)
		rc = bond_room(port->n_txq * TX_DESC, 0, why, why_size);
	if (rc < 0)
		nic_close(port);
	return rc;
}
