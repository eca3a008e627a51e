/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RSS: by what a device spreads packets over its receive queues. Runs where a port is opened.
 */
#ifndef PORT_RSS_H
#define PORT_RSS_H

struct port;
struct rte_eth_conf;
struct rte_eth_dev_info;

/* Ask for all that the device offers, where it has several queues.      [main, manage] */
void rss_ask(struct port *port, const struct rte_eth_dev_info *info,
	     struct rte_eth_conf *eth);

/* Of the device, started: what it made of that. Not before rss_ask().   [main, manage] */
void rss_learn(struct port *port);

#endif
