/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rss: configure RSS and read back the device's setting. Drivers grant less than they
 * offer, and some grant nothing. So `show ports` shows the setting that is in force, not
 * the requested one. Runs in main and manage; port_rss() in any thread.
 */
#include "port/rss.h"

#include <stdio.h>

#include <rte_errno.h>
#include <rte_ethdev.h>

#include "base/log.h"
#include "port/port.h"

/*
 * Hash all fields that the port can hash, because the default halves the throughput (AINTEC
 * 2015). Checksums are left out, because they differ within a flow. The bits from 50 on
 * restrict the hashed fields.
 */
#define RSS_TYPES (((1ull << 50) - 1) & ~(RTE_ETH_RSS_IPV4_CHKSUM | RTE_ETH_RSS_L4_CHKSUM))

/*
 * Longer than the key of any device, because some drivers write their key without checking
 * the size of the buffer.
 */
#define KEY_ROOM_BYTES 128

void
rss_request(struct port *port, const struct rte_eth_dev_info *info,
	    struct rte_eth_conf *eth)
{
	port->rss_hf = port->n_rxq > 1 ? info->flow_type_rss_offloads & RSS_TYPES : 0;
	port->rss_untold = false;
	if (port->rss_hf == 0)
		return;
	eth->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
	eth->rx_adv_conf.rss_conf.rss_hf = port->rss_hf;
}

void
rss_read_back(struct port *port)
{
	uint8_t key[KEY_ROOM_BYTES];
	struct rte_eth_rss_conf conf = {.rss_key = key, .rss_key_len = sizeof(key)};
	int rc;

	if (port->rss_hf == 0)
		return; /* nothing was requested */
	rc = rte_eth_dev_rss_hash_conf_get(port->port_id, &conf);
	port->rss_untold = rc < 0;
	if (rc < 0)
		log_debug("port: rss hashes unknown port=%s error=\"%s\"", port->name,
			  rte_strerror(-rc));
	else
		port->rss_hf = conf.rss_hf;
}

const char *
port_rss(const struct port *port, char buf[64])
{
	static const struct {
		uint64_t types;
		const char *word;
	} known[] = {
		{RTE_ETH_RSS_IP, "ip"},
		{RTE_ETH_RSS_TCP, "tcp"},
		{RTE_ETH_RSS_UDP, "udp"},
		{RTE_ETH_RSS_SCTP, "sctp"},
		{RTE_ETH_RSS_TUNNEL, "tunnel"},
		{RTE_ETH_RSS_ETH | RTE_ETH_RSS_L2_PAYLOAD, "l2"},
	};
	size_t n = 0;

	snprintf(buf, 64, "%s", port->rss_untold ? "unknown" : "none");
	for (unsigned int i = 0; !port->rss_untold && i < sizeof(known) / sizeof(known[0]);
	     i++)
		if ((port->rss_hf & known[i].types) != 0)
			n += (size_t)snprintf(buf + n, 64 - n, "%s%s", n > 0 ? " " : "",
					      known[i].word);
	return buf;
}
