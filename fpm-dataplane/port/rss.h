/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rss: how a device spreads packets over its receive queues. Runs where a port is opened.
 */
#ifndef PORT_RSS_H
#define PORT_RSS_H

struct port;
struct rte_eth_conf;
struct rte_eth_dev_info;

/* Request all hashes that the device offers, if it has several queues.    [main, manage] */
void rss_request(struct port *port, const struct rte_eth_dev_info *info,
		 struct rte_eth_conf *eth);

/*
 * Read back the hashes in force after the device has started. Call rss_request() before.
 *                                                                        [main, manage]
 */
void rss_read_back(struct port *port);

#endif
