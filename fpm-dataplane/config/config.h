/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config: the values of the YAML file. load.h reads the file, print.h prints the values.
 * dist/fpm-dataplane.yaml lists every key with its meaning and its default.
 */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "base/bfd_conf.h"
#include "base/filter_tables.h"
#include "base/fpm_allow.h"
#include "base/log.h"
#include "base/policer.h"
#include "base/port_options.h"
#include "base/limits.h"
#include "base/instructions.h"
#include "base/routes_from.h"
#include "base/sflow_conf.h"

#define CONFIG_PORTS_MAX        64
#define CONFIG_CORES_MAX        64
#define CONFIG_PLUGINS_MAX      8
#define CONFIG_SHARED_CORES_MAX 62u /* forwarding CPUs with keep-nics */
#define CONFIG_BURST_MAX        256
#define CONFIG_MTU_MIN          68
#define CONFIG_MTU_MAX          9216
#define CONFIG_MTU_IP6_MIN      1280 /* RFC 8200, 5: below it Linux removes IPv6 */

/* A place in the file; the first line is 1, the first column is 1. */
struct config_pos {
	int line, column;
};

struct config_port {
	char tap[IFNAMSIZ];
	char device[256];
	unsigned int mtu_bytes;
	unsigned int n_rxq; /* 0: n_core, or if n_core is 0: one per forwarder */
	unsigned int core[CONFIG_CORES_MAX]; /* CPU that serves queue 0, 1, ... */
	unsigned int n_core;                 /* 0: the daemon selects */
	struct port_options options;
	struct config_pos pos;     /* of the device, for messages */
	struct config_pos tap_pos; /* of the TAP */
	struct config_pos cores_pos;
};

struct config {
	char file[PATH_MAX];
	struct config_port port[CONFIG_PORTS_MAX];
	unsigned int n_port;
	unsigned int core[CONFIG_CORES_MAX]; /* CPU numbers */
	unsigned int n_core;                 /* 0: the daemon selects */
	char control_netns[64];              /* "": the daemon's own */
	enum routes_from routes_from;
	bool through_kernel;    /* the kernel forwards to interfaces that are no ports */
	bool rp_filter_ignored; /* forwarders ignore the kernel's rp_filter */
	bool mpls_all;          /* each interface accepts MPLS, even if off in the kernel */
	char filter_table[FILTER_TABLES_TEXT]; /* nft tables: "inet a, inet b"; "": none */
	bool filter_pass; /* without a usable ruleset all packets pass */
	struct sflow_conf sflow;
	struct bfd_setup_conf bfd;
	struct sockaddr_storage fpm_listen;
	struct fpm_from fpm_from; /* the clients that are accepted as zebra */
	uint64_t fpm_queue_limit_bytes;
	bool fpm_feedback;
	unsigned int sweep_quiet_s, sweep_max_s, sweep_restart_s;
	struct policer_conf policer[N_PUNT_CLASS];
	struct table_limits limits;        /* entries of tables; routes 0: no limit */
	unsigned int checkpoint_max_age_s; /* 0: no checkpoint */
	bool keep_nics; /* fpm-nics keeps the NICs over planned restarts */
	char control_socket[108];
	bool metrics_on;
	struct sockaddr_storage metrics_listen;
	bool hugepages;
	unsigned int memory_mib;
	bool fib_per_node; /* a copy of the FIB on each NUMA node with a forwarder */
	char plugin[CONFIG_PLUGINS_MAX][256]; /* shared objects for the EAL to load */
	unsigned int n_plugin;
	bool poll_always;
	enum instructions instructions;
	unsigned int rx_burst, tx_burst; /* packets */
	enum log_level log_level;
};

/* Return the port whose TAP is named `tap`, or NULL. */
static inline const struct config_port *
config_port(const struct config *conf, const char *tap)
{
	for (unsigned int i = 0; i < conf->n_port; i++)
		if (strcmp(conf->port[i].tap, tap) == 0)
			return &conf->port[i];
	return NULL;
}

/*
 * Return the number of receive queues that the file gives; 0: it gives none, and the port
 * gets at most one per forwarder.
 */
static inline unsigned int
config_port_queues(const struct config_port *port)
{
	return port->n_rxq != 0 ? port->n_rxq : port->n_core;
}

#endif
