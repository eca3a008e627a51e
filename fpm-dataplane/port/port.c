/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A DPDK port and its TAP: attach, configure, start, and the few calls that other threads
 * make on it later. Runs in main at start, in manage later; what a vdev cannot do (promiscuous
 * off, MAC, MTU) is tolerated, what it lacks and we need is refused with a sentence.
 */
#include "port/port.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>

#include "base/log.h"
#include "base/why.h"
#include "port/attach.h"
#include "port/rss.h"
#include "port/tags.h"

/*
 * What is asked of a running device, one question at a time: DPDK leaves that to its callers,
 * and some devices (vmxnet3) have one register for all answers: a link could seem down
 * because counters were read meanwhile.
 */
static pthread_mutex_t control[RTE_MAX_ETHPORTS] = {
	[0 ... RTE_MAX_ETHPORTS - 1] = PTHREAD_MUTEX_INITIALIZER,
};

/* What sockets of net_af_packet have told so far of frames without room: who holds control. */
static uint64_t missed[RTE_MAX_ETHPORTS];

#define RX_DESC 1024
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

/* Beside an IP packet in a buffer: Ethernet header, two VLAN tags, checksum, reserve. */
#define L2_ROOM_BYTES 64

static void
kernel_if_find(struct port *port)
{
	const char *p = strstr(port->device, "iface=");

	port->kernel_if[0] = '\0';
	/* Of net_vhost it is a socket's path. */
	if (p != NULL && strncmp(port->device, "net_vhost", 9) != 0)
		snprintf(port->kernel_if, sizeof(port->kernel_if), "%.*s",
			 (int)strcspn(p + 6, ","), p + 6);
}

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
 * The driver of vmxnet3 (22.11) gives a running device another MTU by stopping it under those
 * who poll it, and leaves it marked as stopped: its link is never asked for again; the one of
 * e1000e takes it and long frames do not come in (tests/vm/test_nic.py, QEMU). So these keep the
 * MTU that they start with; shorter frames are no matter of the device's.
 */
static bool
mtu_is_fixed(const struct port *port)
{
	return strcmp(port->driver, "net_vmxnet3") == 0 ||
	       strcmp(port->driver, "net_e1000_em") == 0;
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
		rc = rte_eth_rx_queue_setup(port->port_id, q, RX_DESC, SOCKET_ID_ANY, NULL,
					    pool);
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
is_driven_by(const struct port *port, const char *driver)
{
	return port->bond != BOND_NONE ? bond_has_driver(port->port_id, driver)
				       : strcmp(port->driver, driver) == 0;
}

static int
check_limits(const struct port *port, const struct rte_eth_dev_info *info,
	     unsigned int n_rxq, unsigned int mtu_bytes, char *why, unsigned int why_size)
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
port_could_be(const struct port *port, unsigned int n_rxq, unsigned int mtu_bytes,
	      char *why, unsigned int why_size)
{
	struct rte_eth_dev_info info;
	int rc;

	pthread_mutex_lock(&control[port->port_id]);
	rc = rte_eth_dev_info_get(port->port_id, &info);
	pthread_mutex_unlock(&control[port->port_id]);
	if (rc < 0)
		return 0; /* to be seen when it is opened */
	return check_limits(port, &info, n_rxq, mtu_bytes, why, why_size);
}

static int
configure(struct port *port, const struct port_conf *conf, struct rte_mempool *pool,
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
	rc = check_limits(port, &info, port->n_rxq, conf->mtu_bytes, why, why_size);
	if (rc < 0)
		return rc;
	port->cksum_able = (info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_IPV4_CKSUM) != 0;
	port->rx_cksum = port->cksum_able && !conf->cksum_off;
	if (port->rx_cksum)
		eth.rxmode.offloads |= RTE_ETH_RX_OFFLOAD_IPV4_CKSUM;
	port->vlan_able = tags_by_device(&info);
	port->vlan_offload = port->vlan_able && !conf->vlan_off;
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
	if (port_set_mtu(port, conf->mtu_bytes) < 0)
		log_debug("port: mtu not set port=%s mtu=%u", port->name, conf->mtu_bytes);
	/*
	 * Its host lets no tag in that was not asked for (QEMU: VIRTIO_NET_F_CTRL_VLAN, which
	 * the driver always takes), but to who takes everything; others' frames we drop.
	 */
	if (is_driven_by(port, "net_virtio") &&
	    rte_eth_promiscuous_enable(port->port_id) < 0)
		log_debug("port: promiscuous mode not supported port=%s", port->name);
	/* OSPF, ND and others come as multicast; virtual devices often have no filter. */
	if (rte_eth_allmulticast_enable(port->port_id) < 0)
		log_debug("port: allmulticast not supported port=%s", port->name);
	return 0;
}

/*
 * The TAP: the one that was kept over a restart if it is still good, whatever it is called
 * by now, else by its name. Returns 0 or -errno.
 */
static int
tap_get(struct port *port, const struct port_conf *conf)
{
	int rc;

	if (conf->tap_fd >= 0) {
		rc = tap_adopt(&port->tap, conf->tap_fd, conf->netns);
		port->tap_kept = rc == 0;
		if (rc == 0 && strcmp(port->tap.name, conf->tap) != 0)
			log_info("port: kept tap was renamed, and goes on as it is "
				 "name=%s tap=%s ifindex=%u",
				 port->name, port->tap.name, port->tap.ifindex);
		if (rc == 0)
			return 0;
		log_warn("port: kept tap is of no use name=%s error=%s", port->name,
			 strerror(-rc));
	}
	return tap_open(&port->tap, conf->tap, conf->netns, port->mac, conf->mtu_bytes,
			&port->tap_new);
}

/* With its device, so that it can come again, as it or with other arguments. */
static void
device_close(const struct port *port)
{
	uint16_t port_id = port->port_id;
	struct rte_eth_dev_info info;
	struct rte_device *device =
		rte_eth_dev_info_get(port_id, &info) == 0 ? info.device : NULL;

	pthread_mutex_lock(&control[port_id]);
	if (port->bond != BOND_NONE) {
		bond_close(port_id);
		device = NULL;
	} else {
		rte_eth_dev_stop(port_id);
		rte_eth_dev_close(port_id);
	}
	pthread_mutex_unlock(&control[port_id]);
	if (device != NULL && rte_dev_remove(device) < 0)
		log_debug("port: device not removed port=%u", port_id);
}

/* Attach a device that is no bond. Returns 0 or -errno with the reason in `why`. */
static int
device_attach(struct port *port, const char *devargs, const char *name, char *why,
	      unsigned int why_size)
{
	struct fanout_seen sockets;
	int rc;

	fanout_learn(&sockets);
	rc = attach(devargs, name, &port->port_id, why, why_size);
	fanout_learn(NULL);
	port->n_socket = sockets.n;
	memcpy(port->socket, sockets.fd, sizeof(port->socket));
	return rc;
}

/* The device, attached and started. Returns 0 or -errno, undone. */
static int
device_open(struct port *port, const struct port_conf *conf, struct rte_mempool *pool,
	    char *why, unsigned int why_size)
{
	char devargs[512], name[64];
	int rc;

	devargs_make(devargs, sizeof(devargs), name, sizeof(name), conf);
	if (device_is_bond(conf->device))
		rc = bond_open(name, conf->device, &port->port_id, &port->bond, why,
			       why_size);
	else
		rc = device_attach(port, devargs, name, why, why_size);
	if (rc < 0)
		return rc;
	missed[port->port_id] = 0; /* of one that had this number before */
	rc = configure(port, conf, pool, why, why_size);
	/* Of what it has taken, bonds that came before may need some. */
	if (rc == 0)
		rc = bond_room(port->n_txq * TX_DESC, 0, why, why_size);
	if (rc < 0)
		device_close(port);
	return rc;
}

int
port_open(struct port *port, uint16_t ifidx, const struct port_conf *conf,
	  struct rte_mempool *pool, char *why, unsigned int why_size)
{
	int rc;

	memset(port, 0, sizeof(*port));
	port->ifidx = ifidx;
	port->place = conf->place != 0 ? conf->place : ifidx;
	port->pool = pool;
	port->mtu_bytes = conf->mtu_bytes;
	port->tap.fd = -1;
	snprintf(port->name, sizeof(port->name), "%s", conf->tap);
	snprintf(port->device, sizeof(port->device), "%s", conf->device);
	kernel_if_find(port);
	rc = device_open(port, conf, pool, why, why_size);
	if (rc < 0) {
		if (conf->tap_fd >= 0)
			close(conf->tap_fd);
		return rc;
	}
	rc = tap_get(port, conf);
	if (rc == -EBUSY)
		why_not(why, why_size, rc,
			"TAP is held by another process (a second daemon, or the "
			"fpm-supervise of one?)");
	else if (rc == -EEXIST)
		why_not(why, why_size, rc,
			"an interface of that name exists and is not a TAP");
	else if (rc < 0)
		why_not(why, why_size, rc, "TAP cannot be made: %s", strerror(-rc));
	if (rc < 0)
		device_close(port);
	return rc;
}

bool
port_is_shared(const char *device)
{
	return strncmp(device, "net_af_packet", 13) == 0;
}

void
port_discard(const struct port *port)
{
	struct rte_mbuf *m[64];
	unsigned int most = 2 * RX_DESC; /* no more than that have waited */

	for (uint16_t q = 0; q < port->n_rxq; q++)
		for (unsigned int n, all = 0; all <= most; all += n) {
			n = rte_eth_rx_burst(port->port_id, q, m, 64);
			rte_pktmbuf_free_bulk(m, n);
			if (n == 0)
				break;
		}
}

void
port_publish(struct port *slot, const struct port *port)
{
	struct port unseen = *port;

	unseen.ifidx = 0;
	counters_port(port->ifidx, &unseen.base);
	*slot = unseen;
	__atomic_store_n(&slot->ifidx, port->ifidx, __ATOMIC_RELEASE);
}

void
port_close(struct port *port)
{
	tap_close(&port->tap);
	device_close(port);
}

int
port_stats(const struct port *port, struct port_stats *st)
{
	struct rte_eth_stats s;
	uint64_t by_queue = 0;
	int rc;

	pthread_mutex_lock(&control[port->port_id]);
	rc = rte_eth_stats_get(port->port_id, &s);
	for (unsigned int i = 0; i < port->n_socket; i++)
		missed[port->port_id] += fanout_missed(port->socket[i]);
	s.imissed += missed[port->port_id];
	pthread_mutex_unlock(&control[port->port_id]);
	if (rc < 0)
		return rc;
	*st = (struct port_stats){
		.rx_packets = s.ipackets,
		.rx_bytes = s.ibytes,
		.rx_missed = s.imissed,
		.rx_errors = s.ierrors,
		.rx_nombuf = s.rx_nombuf,
		.tx_packets = s.opackets,
		.tx_bytes = s.obytes,
		.tx_errors = s.oerrors,
	};
	for (unsigned int i = 0; i < port->n_rxq && i < PORT_STATS_QUEUES; i++) {
		st->queue_rx_packets[i] = s.q_ipackets[i];
		by_queue += s.q_ipackets[i];
	}
	/* Some drivers leave all of them 0. */
	if (by_queue > 0 || s.ipackets == 0)
		st->n_queue = RTE_MIN(port->n_rxq, PORT_STATS_QUEUES);
	return 0;
}

void
port_buffers(const struct port *port, unsigned int *n, unsigned int *n_free)
{
	*n = port->pool->size;
	*n_free = rte_mempool_avail_count(port->pool);
}

bool
port_buffers_short(const struct port *port)
{
	unsigned int n_free = rte_mempool_avail_count(port->pool);

	/* Threads have some of their own, which are of no use to the others. */
	for (unsigned int i = 0; i < RTE_MAX_LCORE && port->pool->cache_size > 0; i++)
		n_free -= RTE_MIN(n_free, port->pool->local_cache[i].len);
	return n_free <= port->pool->size / 64;
}

bool
port_link_up(const struct port *port)
{
	struct rte_eth_link link;
	bool up;
	int rc;

	pthread_mutex_lock(&control[port->port_id]);
	rc = rte_eth_link_get_nowait(port->port_id, &link);
	up = rc == 0 && link.link_status == RTE_ETH_LINK_UP;
	if (up && port->bond == BOND_LACP)
		up = bond_lacp_up(port->port_id);
	pthread_mutex_unlock(&control[port->port_id]);
	return up;
}

bool
port_takes_all(const struct port *port)
{
	return rte_eth_promiscuous_get(port->port_id) == 1;
}

bool
port_takes_groups(const struct port *port)
{
	return rte_eth_allmulticast_get(port->port_id) == 1;
}

int
port_bond(const struct port *port, struct bond_state *state)
{
	int rc;

	pthread_mutex_lock(&control[port->port_id]);
	rc = bond_state(port->port_id, state);
	pthread_mutex_unlock(&control[port->port_id]);
	return rc;
}

/* Of a device that keeps its MTU: does it hold back frames of that length?  [with control] */
static bool
is_beyond(const struct port *port, unsigned int mtu_bytes)
{
	uint16_t now;

	return rte_eth_dev_get_mtu(port->port_id, &now) == 0 && mtu_bytes > now;
}

bool
port_mtu_is_beyond(const struct port *port, unsigned int mtu_bytes)
{
	bool beyond;

	pthread_mutex_lock(&control[port->port_id]);
	beyond = mtu_is_fixed(port) && is_beyond(port, mtu_bytes);
	pthread_mutex_unlock(&control[port->port_id]);
	return beyond;
}

int
port_set_mtu(const struct port *port, unsigned int mtu_bytes)
{
	int rc;

	pthread_mutex_lock(&control[port->port_id]);
	if (mtu_is_fixed(port))
		rc = is_beyond(port, mtu_bytes) ? -EBUSY : 0;
	else
		rc = rte_eth_dev_set_mtu(port->port_id, (uint16_t)mtu_bytes);
	pthread_mutex_unlock(&control[port->port_id]);
	return rc;
}

int
port_set_mac(const struct port *port, const uint8_t mac[6])
{
	struct rte_ether_addr addr;
	int rc;

	memcpy(addr.addr_bytes, mac, sizeof(addr.addr_bytes));
	pthread_mutex_lock(&control[port->port_id]);
	rc = rte_eth_dev_default_mac_addr_set(port->port_id, &addr);
	pthread_mutex_unlock(&control[port->port_id]);
	return rc;
}

bool
port_take_tags(const struct port *port)
{
	int rc;

	if (!port->vlan_offload)
		return false;
	pthread_mutex_lock(&control[port->port_id]);
	rc = rte_eth_dev_get_vlan_offload(port->port_id);
	if (rc >= 0)
		rc = rte_eth_dev_set_vlan_offload(port->port_id,
						  rc | RTE_ETH_VLAN_STRIP_OFFLOAD);
	pthread_mutex_unlock(&control[port->port_id]);
	if (rc < 0)
		log_debug("port: device does not take tags port=%s error=%s", port->name,
			  rte_strerror(-rc));
	return rc >= 0;
}

int
port_add_mac(const struct port *port, const uint8_t mac[6])
{
	struct rte_ether_addr addr;
	int rc;

	memcpy(addr.addr_bytes, mac, sizeof(addr.addr_bytes));
	pthread_mutex_lock(&control[port->port_id]);
	rc = rte_eth_dev_mac_addr_add(port->port_id, &addr, 0);
	if (rc < 0)
		rc = rte_eth_promiscuous_enable(port->port_id);
	pthread_mutex_unlock(&control[port->port_id]);
	return rc;
}
