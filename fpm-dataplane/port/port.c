/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port: open and close a DPDK port and its TAP, by main at the start and by manage later,
 * and operations on a device for other threads. The device is operated here, or by fpm-nics
 * if that keeps it (port/nicd_client.h).
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
#include "base/errmsg.h"
#include "pci/kernel_if.h"
#include "port/claim.h"
#include "port/nic.h"
#include "port/nicd_client.h"

/*
 * By port id: the number of frames that found no room in the sockets of net_af_packet,
 * summed over all their reports. Guarded by nic_control.
 */
static uint64_t missed[RTE_MAX_ETHPORTS];

int
port_quiet_kernel(const struct port *port, char *why, unsigned int why_size)
{
	char name[IF_NAMESIZE];
	int rc;

	if (port->kernel_if[0] == '\0' ||
	    if_indextoname(port->kernel_ifindex, name) == NULL)
		return 0;
	rc = kernel_if_ipv6_off(name);
	if (rc > 0)
		log_info("port: kernel ipv6 turned off name=%s interface=%s", port->name,
			 name);
	if (rc < 0)
		why_not(why, why_size, rc,
			"the kernel has IPv6 on %s and would answer in the place of the "
			"port, and IPv6 cannot be turned off here (%s): first run sysctl "
			"-w net/ipv6/conf/%s/disable_ipv6=1",
			name, strerror(-rc), name);
	return rc;
}

/*
 * Get the TAP of a port: the TAP that was kept over a restart if it is usable, whatever its
 * name is now, else the TAP of the configured name. If the kept TAP was deleted and its
 * name is in use, the port gets no TAP, and tap.ifindex is 0. Returns 0 or -errno.
 */
static int
port_get_tap(struct port *port, const struct port_conf *conf)
{
	int rc;

	if (conf->tap_fd >= 0) {
		rc = tap_adopt(&port->tap, conf->tap_fd, conf->netns);
		port->tap_kept = rc == 0;
		if (rc == 0 && strcmp(port->tap.name, conf->tap) != 0)
			log_info("port: kept tap renamed port=%s tap=%s ifindex=%u",
				 port->name, port->tap.name, port->tap.ifindex);
		if (rc == 0)
			return 0;
		log_warn("port: kept tap unusable name=%s error=\"%s\"", port->name,
			 strerror(-rc));
	}
	rc = tap_open(&port->tap, conf->tap, conf->netns, port->mac, conf->mtu_bytes,
		      &port->tap_new);
	if (rc != -EBUSY || conf->tap_fd < 0)
		return rc;
	/*
	 * The kept TAP was deleted. Then the TAP of another port was renamed to its name,
	 * or the predecessor made the TAP again. neigh makes the TAP when the name is free,
	 * as after the deletion of a TAP.
	 */
	return tap_open_without(&port->tap, conf->tap, conf->netns);
}

/*
 * Close the device, unless fpm-nics keeps it. fpm-nics closes it when no daemon needs it
 * any longer.
 */
static void
port_close_device(const struct port *port)
{
	if (!port->held)
		nic_close(port);
}

void
port_claim(struct port *port)
{
	char why[256];

	if (port->claim < 0 && port->kernel_if[0] != '\0')
		port->claim = claim_take(port->kernel_if, why, sizeof(why));
	if (port->claim == -EBUSY)
		log_error("port: interface not claimed name=%s reason=\"%s\"", port->name,
			  why);
	if (port->claim < 0)
		port->claim = -1;
}

void
port_release(struct port *port)
{
	if (port->claim >= 0)
		close(port->claim);
	port->claim = -1;
}

int
port_open(struct port *port, uint16_t ifidx, const struct port_conf *conf,
	  struct rte_mempool *pool, char *why, unsigned int why_size)
{
	int rc = 0, was_on = 0, claim = -1;

	memset(port, 0, sizeof(*port));
	port->ifidx = ifidx;
	port->place = conf->place != 0 ? conf->place : ifidx;
	port->pool = pool;
	port->mtu_bytes = conf->mtu_bytes;
	port->tap.fd = -1;
	snprintf(port->name, sizeof(port->name), "%s", conf->tap);
	snprintf(port->device, sizeof(port->device), "%s", conf->device);
	kernel_if_of(port->device, port->kernel_if);
	kernel_if_primary(port->kernel_if);
	port->kernel_ifindex = if_nametoindex(port->kernel_if);
	if (port->kernel_if[0] != '\0')
		claim = claim_take(port->kernel_if, why, why_size);
	if (claim == -EBUSY)
		rc = claim;
	else if (nicd_is_connected())
		rc = nicd_open(port, conf, why, why_size);
	else
		rc = nic_open(port, conf, pool, why, why_size);
	port->claim = claim;
	if (rc == 0) {
		was_on = port_quiet_kernel(port, why, why_size);
		if (was_on < 0)
			port_close_device(port);
		rc = was_on < 0 ? was_on : 0;
	}
	if (rc < 0) {
		if (conf->tap_fd >= 0)
			close(conf->tap_fd);
		port_release(port);
		return rc;
	}
	missed[port->port_id] = 0; /* an earlier port may have had this id */
	rc = port_get_tap(port, conf);
	if (rc == -EBUSY)
		why_not(why, why_size, rc,
			"the TAP is held by another process, perhaps a second daemon or "
			"its fpm-supervise");
	else if (rc == -EEXIST)
		why_not(why, why_size, rc,
			"an interface of that name exists and is not a TAP");
	else if (rc < 0)
		why_not(why, why_size, rc, "the TAP cannot be created: %s", strerror(-rc));
	if (rc < 0 && was_on > 0)
		kernel_if_ipv6_on(port->kernel_if);
	if (rc < 0) {
		port_close_device(port);
		port_release(port);
	}
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
	unsigned int max = 2 * NIC_RX_DESC; /* ends the loop if frames keep coming */

	if (port->held)
		return; /* no other daemon receives these frames */
	for (uint16_t q = 0; q < port->n_rxq; q++)
		for (unsigned int n, all = 0; all <= max; all += n) {
			n = rte_eth_rx_burst(port->port_id, q, m, 64);
			rte_pktmbuf_free_bulk(m, n);
			if (n == 0)
				break;
		}
}

void
port_publish(struct port *slot, const struct port *port)
{
	static uint32_t openings;
	struct port unseen = *port;

	unseen.ifidx = 0;
	unseen.opening = __atomic_add_fetch(&openings, 1, __ATOMIC_RELAXED);
	counters_port(port->ifidx, &unseen.base);
	*slot = unseen;
	/* Release: a reader that sees the number (port.h, acquire) sees the whole port. */
	__atomic_store_n(&slot->ifidx, port->ifidx, __ATOMIC_RELEASE);
}

void
port_close(struct port *port)
{
	tap_close(&port->tap);
	port_close_device(port);
	port_release(port);
}

int
port_could_be(const struct port *port, unsigned int n_rxq, unsigned int mtu_bytes,
	      char *why, unsigned int why_size)
{
	return port->held ? 0 : nic_could_be(port, n_rxq, mtu_bytes, why, why_size);
}

int
port_stats(const struct port *port, struct port_stats *st)
{
	struct rte_eth_stats s;
	uint64_t by_queue = 0;
	int rc;

	if (port->held)
		return nicd_stats(port, st);
	pthread_mutex_lock(&nic_control[port->port_id]);
	rc = rte_eth_stats_get(port->port_id, &s);
	for (unsigned int i = 0; i < port->n_socket; i++)
		missed[port->port_id] += fanout_missed(port->socket[i]);
	s.imissed += missed[port->port_id];
	pthread_mutex_unlock(&nic_control[port->port_id]);
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
	/* Some drivers leave the counters of all queues 0. */
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

	/* Buffers in the cache of a thread are of no use to other threads. */
	for (unsigned int i = 0; i < RTE_MAX_LCORE && port->pool->cache_size > 0; i++)
		n_free -= RTE_MIN(n_free, port->pool->local_cache[i].len);
	return n_free <= port->pool->size / 64;
}

struct port_link
port_link(const struct port *port)
{
	struct rte_eth_link link;
	struct port_link is = {0};

	if (port->held)
		return nicd_link(port);
	pthread_mutex_lock(&nic_control[port->port_id]);
	is.up = rte_eth_link_get_nowait(port->port_id, &link) == 0 &&
		link.link_status == RTE_ETH_LINK_UP;
	if (is.up && port->bond == BOND_LACP)
		is.up = bond_lacp_up(port->port_id);
	pthread_mutex_unlock(&nic_control[port->port_id]);
	if (is.up && link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN) {
		is.mbit_per_s = link.link_speed;
		is.full_duplex = link.link_duplex == RTE_ETH_LINK_FULL_DUPLEX;
	}
	/* net_af_packet reports the same speed for each interface. */
	if (is.up && port->kernel_if[0] != '\0')
		(void)kernel_if_speed(port->kernel_ifindex, &is.mbit_per_s,
				      &is.full_duplex);
	return is;
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

	pthread_mutex_lock(&nic_control[port->port_id]);
	rc = bond_state(port->port_id, state);
	pthread_mutex_unlock(&nic_control[port->port_id]);
	return rc;
}

bool
port_mtu_is_beyond(const struct port *port, unsigned int mtu_bytes)
{
	return nic_mtu_is_beyond(port, mtu_bytes);
}

int
port_set_mtu(const struct port *port, unsigned int mtu_bytes)
{
	return port->held ? nicd_set_mtu(port, mtu_bytes) : nic_set_mtu(port, mtu_bytes);
}

int
port_set_mac(const struct port *port, const uint8_t mac[6])
{
	struct rte_ether_addr addr;
	int rc;

	if (port->held)
		return nicd_set_mac(port, mac);
	rc = nic_check_name(port);
	if (rc < 0)
		return rc;
	memcpy(addr.addr_bytes, mac, sizeof(addr.addr_bytes));
	pthread_mutex_lock(&nic_control[port->port_id]);
	rc = rte_eth_dev_default_mac_addr_set(port->port_id, &addr);
	pthread_mutex_unlock(&nic_control[port->port_id]);
	return rc;
}

int
port_set_link(const struct port *port, bool up)
{
	return port->held ? nicd_set_link(port, up) : nic_set_link(port, up);
}

bool
port_take_tags(const struct port *port)
{
	int rc;

	if (port->held)
		return nicd_take_tags(port);
	if (!port->vlan_offload)
		return false;
	pthread_mutex_lock(&nic_control[port->port_id]);
	rc = rte_eth_dev_get_vlan_offload(port->port_id);
	if (rc >= 0)
		rc = rte_eth_dev_set_vlan_offload(port->port_id,
						  rc | RTE_ETH_VLAN_STRIP_OFFLOAD);
	pthread_mutex_unlock(&nic_control[port->port_id]);
	if (rc < 0)
		log_debug("port: vlan offload refused port=%s error=\"%s\"", port->name,
			  rte_strerror(-rc));
	return rc >= 0;
}

int
port_add_mac(const struct port *port, const uint8_t mac[6])
{
	struct rte_ether_addr addr;
	int rc, refusal;
	bool all;

	if (port->held)
		return nicd_add_mac(port, mac);
	rc = nic_check_name(port);
	if (rc < 0)
		return rc;
	memcpy(addr.addr_bytes, mac, sizeof(addr.addr_bytes));
	pthread_mutex_lock(&nic_control[port->port_id]);
	refusal = rc = rte_eth_dev_mac_addr_add(port->port_id, &addr, 0);
	all = rc < 0 && rte_eth_promiscuous_get(port->port_id) != 1;
	if (rc < 0)
		rc = rte_eth_promiscuous_enable(port->port_id);
	pthread_mutex_unlock(&nic_control[port->port_id]);
	if (all && rc == 0)
		log_info("port: promiscuous mode on port=%s reason=mac-not-added "
			 "error=\"%s\"",
			 port->name, strerror(-refusal));
	return rc;
}

void
port_remove_mac(const struct port *port, const uint8_t mac[6])
{
	struct rte_ether_addr addr;

	if (port->held) {
		nicd_remove_mac(port, mac);
		return;
	}
	memcpy(addr.addr_bytes, mac, sizeof(addr.addr_bytes));
	pthread_mutex_lock(&nic_control[port->port_id]);
	rte_eth_dev_mac_addr_remove(port->port_id, &addr);
	pthread_mutex_unlock(&nic_control[port->port_id]);
}
