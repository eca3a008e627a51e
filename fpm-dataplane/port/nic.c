/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device of a port: attached, configured, started; stopped and closed. Runs in main at start,
 * in manage later, or in the process that keeps NICs (nicd/server.c); what a vdev cannot do
 * (promiscuous off, MAC, MTU) is tolerated, what it lacks and we need is refused with a sentence.
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
#include "port/attach.h"
#include "port/rss.h"

pthread_mutex_t nic_control[RTE_MAX_ETHPORTS] = {
	[0 ... RTE_MAX_ETHPORTS - 1] = PTHREAD_MUTEX_INITIALIZER,
};

#define TX_DESC 1024

/*
 * Devargs for the EAL: a virtual device needs a name of its own ("net_af_packet" becomes
 * "net_af_packet_wan0"), af_packet a queue pair a forwarder and room for bursts. A guest's frame
 * has one buffer, as any NIC's: it may say that it is as long as it likes, and would have all.
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
		snprintf(out + n, size - n, ",framecnt=2048");
}

/*
 * Which devices may take VLAN tags off frames and put them in. DPDK tells what a port offers,
 * and not who does it, nor what it costs; so this goes by the driver, and by what was read there
 * (22.11) and tried.
 *
 * Not here: net_virtio, net_vhost and net_af_packet, which do it in software, later than we do.
 * net_vmxnet3 takes 802.1ad's tags off, too, and does not tell them from 802.1Q's (in QEMU).
 * net_ixgbe and net_i40e send by a slower loop as soon as they may insert, VLANs or not, and
 * net_ixgbe hands out frames that come while it begins to strip without a word of their tag.
 * net_e1000_igb is as net_e1000_em by its text, and not tried. net_bonding does not pass on to
 * its members what is asked of it while it runs.
 */
bool
nic_takes_tags(const struct rte_eth_dev_info *info)
{
	return strcmp(info->driver_name, "net_e1000_em") == 0 &&
	       (info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_VLAN_STRIP) != 0 &&
	       (info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_VLAN_INSERT) != 0;
}

/*
 * The driver of vmxnet3 (22.11) gives a running device another MTU by stopping it under those
 * who poll it, and leaves it marked as stopped: its link is never asked for again; the one of
 * e1000e takes it and long frames do not come in (tests/vm/test_nic.py, QEMU). So these keep the
 * MTU that they start with; shorter frames are no matter of the device's.
 */
static bool
nic_mtu_is_fixed(const struct port *port)
{
	return strcmp(port->driver, "net_vmxnet3") == 0 ||
	       strcmp(port->driver, "net_e1000_em") == 0;
}

/* Of a device that keeps its MTU: does it hold back frames of that length?  [with control] */
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
nic_set_mtu(const struct port *port, unsigned int mtu_bytes)
{
	int rc;

	pthread_mutex_lock(&nic_control[port->port_id]);
	if (nic_mtu_is_fixed(port))
		rc = nic_mtu_is_more(port, mtu_bytes) ? -EBUSY : 0;
	else
		rc = rte_eth_dev_set_mtu(port->port_id, (uint16_t)mtu_bytes);
	pthread_mutex_unlock(&nic_control[port->port_id]);
	return rc;
}

/* Beside an IP packet in a buffer: Ethernet header, two VLAN tags, checksum, reserve. */
#define L2_ROOM_BYTES 64

/*
 * The largest MTU of a device, as rte_eth_dev_set_mtu() reckons it: a driver tells the
 * longest frame, and with a largest MTU of its own also what it counts beside it.
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
 * Configure and start the device with as many queues as *port says. Returns 0 or -errno with
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

/* Is the device, or one of a bond's, driven by that driver? */
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
		return 0; /* to be seen when it is opened */
	return nic_check_limits(port, &info, n_rxq, mtu_bytes, why, why_size);
}

static int
nic_configure(struct port *port, const struct port_conf *conf, struct rte_mempool *pool,
	      char *why, unsigned int why_size)
{
	struct rte_eth_conf eth = {.rxmode = {.mtu = (uint16_t)conf->mtu_bytes}};
	struct rte_eth_dev_info info;
	struct rte_ether_addr mac;
	unsigned int room;
	int rc = rte_eth_dev_info_get(port->port_id, &info);

	if (rc < 0)
		return why_not(why, why_size, rc, "device tells nothing of itself");
	snprintf(port->driver, sizeof(port->driver), "%s", info.driver_name);
	port->node = rte_eth_dev_socket_id(port->port_id);
	port->mtu_max_bytes = device_mtu_max(&info);
	room = rte_pktmbuf_data_room_size(pool) - RTE_PKTMBUF_HEADROOM - L2_ROOM_BYTES;
	if (port->mtu_max_bytes > room)
		port->mtu_max_bytes = room;
	port->n_txq = (uint16_t)conf->n_txq;
	port->n_rxq = (uint16_t)(conf->n_rxq != 0 ? conf->n_rxq : conf->n_txq);
	if (info.max_tx_queues < port->n_txq)
		return why_not(
			why, why_size, -EINVAL,
			"device has %u transmit queue%s, %u forwarding cores need one each",
			info.max_tx_queues, info.max_tx_queues == 1 ? "" : "s",
			port->n_txq);
	if (conf->n_rxq == 0 && port->n_rxq > info.max_rx_queues)
		port->n_rxq = info.max_rx_queues;
	/* Every queue of an af_packet fanout group gets its share: all must be read. */
	if (strcmp(port->driver, "net_af_packet") == 0 && port->n_rxq < info.max_rx_queues)
		port->n_rxq = info.max_rx_queues;
	/* Its queues come in pairs, and its host spreads frames over all pairs that are in use. */
	if (nic_is_driven_by(port, "net_virtio") && port->n_rxq < port->n_txq)
		port->n_rxq = port->n_txq;
	rc = nic_check_limits(port, &info, port->n_rxq, conf->mtu_bytes, why, why_size);
	if (rc < 0)
		return rc;
	port->cksum_able = (info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_IPV4_CKSUM) != 0;
	port->rx_cksum = port->cksum_able && !conf->options.cksum_off;
	if (port->rx_cksum)
		eth.rxmode.offloads |= RTE_ETH_RX_OFFLOAD_IPV4_CKSUM;
	port->vlan_able = nic_takes_tags(&info);
	port->vlan_offload = port->vlan_able && !conf->options.vlan_off;
	if (port->vlan_offload)
		eth.txmode.offloads |= RTE_ETH_TX_OFFLOAD_VLAN_INSERT;
	rss_ask(port, &info, &eth);
	/* Its start sets up the queues of its members, and their links may be up. */
	if (port->bond == BOND_LACP)
		rc = bond_room(port->n_txq * TX_DESC,
			       (unsigned int)port->n_rxq + port->n_txq, why, why_size);
	if (rc < 0)
		return rc;
	/* A bond's members have none: they would tell of one NIC each. uio has none to give. */
	eth.intr_conf.rxq = port->interrupts = conf->interrupts &&
					       port->bond == BOND_NONE &&
					       !attach_is_by_uio(port->port_id);
	rc = device_start(port, &eth, pool, why, why_size);
	if (rc < 0 && port->interrupts) {
		/* Not every driver that has none takes no notice of the wish. */
		eth.intr_conf.rxq = port->interrupts = false;
		rc = device_start(port, &eth, pool, why, why_size);
	}
	if (rc < 0)
		return rc;
	rss_learn(port);
	rc = rte_eth_macaddr_get(port->port_id, &mac);
	if (rc < 0)
		return why_not(why, why_size, rc, "device has no MAC address");
	memcpy(port->mac, mac.addr_bytes, sizeof(port->mac));
	if (nic_set_mtu(port, conf->mtu_bytes) < 0)
		log_debug("port: mtu not set port=%s mtu=%u", port->name, conf->mtu_bytes);
	/*
	 * Its host lets no tag in that was not asked for (QEMU: VIRTIO_NET_F_CTRL_VLAN, which
	 * the driver always takes), but to who takes everything; others' frames we drop.
	 */
	if (nic_is_driven_by(port, "net_virtio") &&
	    rte_eth_promiscuous_enable(port->port_id) < 0)
		log_debug("port: promiscuous mode not supported port=%s", port->name);
	/* OSPF, ND and others come as multicast; virtual devices often have no filter. */
	if (rte_eth_allmulticast_enable(port->port_id) < 0)
		log_debug("port: allmulticast not supported port=%s", port->name);
	return 0;
}

/* With its device, so that it can come again, as it or with other arguments. */
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

	fanout_learn(&sockets);
	rc = (shared ? attach_here : attach)(devargs, name, &port->port_id, why, why_size);
	fanout_learn(NULL);
	port->n_socket = sockets.n;
	memcpy(port->socket, sockets.fd, sizeof(port->socket));
	return rc;
}

/* The device, attached and started. Returns 0 or -errno, undone. */
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
	/* Of what it has taken, bonds that came before may need some. */
	if (rc == 0)
		rc = bond_room(port->n_txq * TX_DESC, 0, why, why_size);
	if (rc < 0)
		nic_close(port);
	return rc;
}
