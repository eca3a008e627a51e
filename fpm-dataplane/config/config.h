/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config: what the one YAML file says. load.h reads it, print.h writes it.
 *
 *   ports:                       # at least one
 *     - tap: wan0                # the kernel's twin, and the port's name everywhere
 *       device: net_af_packet,iface=veth-wan   # DPDK devargs or a PCI address
 *       mtu: 1500                # optional: IP packet octets, default 1500
 *       queues: 1                # optional: receive queues, default one a core
 *       cores: [1]               # optional: CPU that serves each of them, default: auto
 *       vlan-offload: auto       # optional: auto, or off: tags are never the NIC's
 *       checksum-offload: auto   # optional: auto, or off: checksums are never the NIC's
 *   cores: [1]                   # optional: CPUs that forward, default: the last one allowed
 *   control-netns: r1            # optional: where FRR runs; TAPs and FPM listener live there
 *   fpm:
 *     listen: 127.0.0.1:2620     # optional
 *     peer: self                 # optional: an address of another host's zebra
 *     users: auto                # optional: whose programs of this host may be zebra
 *     feedback: false            # optional: tell zebra which routes are forwarded
 *     queue-limit-mib: 512       # optional: undigested events; beyond it the session closes;
 *                                # at least 64: a full table that waits, all of it
 *     sweep-quiet-s: 5           # optional: silence that ends a replay
 *     sweep-max-s: 120           # optional: sweep at the latest this long after a connect
 *     sweep-restart-s: 120       # optional: hold after a zebra restart
 *   policers:                    # optional: what of each class may go to the host
 *     icmp:                      # a class of base/punt_class.def; each key optional
 *       rate: 2000               # packets a second; 0 closes; or unlimited
 *       burst: 1000              # packets
 *       source-rate: 1000        # of each source
 *       source-burst: 500
 *   checkpoint-max-age-s: 60     # optional: forward by an older checkpoint no more; 0: none
 *   keep-nics: false             # optional: their links stay up over planned restarts
 *   control-socket: /run/fpm-dataplane/control.sock   # optional
 *   metrics: 127.0.0.1:9620      # optional; "off" turns it off
 *   memory:
 *     hugepages: false           # optional
 *     size-mib: 256              # optional: packet buffers and rings
 *     fib-copies: one            # optional: one, or per-node: one a NUMA node that forwards
 *   limits:                      # room in tables (base/limits.def); each key optional
 *     routes: 0                  # 0: no limit
 *     hosts: 131072
 *   plugins: [/usr/lib/pmd/librte_net_x.so]   # optional: drivers that DPDK does not know
 *   idle: adaptive               # optional: adaptive or poll
 *   rx-burst: 64                 # optional: packets a receive call, and a transmit call
 *   tx-burst: 64
 *   log-level: info              # optional: error, warn, info, debug
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

#include "base/fpm_allow.h"
#include "base/log.h"
#include "base/policer.h"
#include "base/port_options.h"
#include "base/limits.h"

#define CONFIG_PORTS_MAX        64
#define CONFIG_CORES_MAX        64
#define CONFIG_PLUGINS_MAX      8
#define CONFIG_SHARED_CORES_MAX 62u /* that forward, where DPDK is shared: keep-nics */
#define CONFIG_BURST_MAX        256
#define CONFIG_MTU_MIN          68
#define CONFIG_MTU_MAX          9216
#define CONFIG_MTU_IP6_MIN      1280 /* RFC 8200, 5: Linux takes IPv6 off an interface below */

/* A place in the file, from 1. */
struct config_pos {
	int line, column;
};

struct config_port {
	char tap[IFNAMSIZ];
	char device[256];
	unsigned int mtu_bytes;
	unsigned int n_rxq; /* 0: as many as n_core; or one a core that forwards */
	unsigned int core[CONFIG_CORES_MAX]; /* CPU that serves queue 0, 1, ... */
	unsigned int n_core;                 /* 0: choose */
	struct port_options options;
	struct config_pos pos;     /* in the file, for messages about the device */
	struct config_pos tap_pos; /* and about the TAP */
	struct config_pos cores_pos;
};

struct config {
	char file[PATH_MAX];
	struct config_port port[CONFIG_PORTS_MAX];
	unsigned int n_port;
	unsigned int core[CONFIG_CORES_MAX]; /* CPU numbers */
	unsigned int n_core;                 /* 0: choose */
	char control_netns[64];              /* "": ours */
	struct sockaddr_storage fpm_listen;
	struct fpm_from fpm_from; /* who may be zebra */
	uint64_t fpm_queue_limit_bytes;
	bool fpm_feedback;
	unsigned int sweep_quiet_s, sweep_max_s, sweep_restart_s;
	struct policer_conf policer[N_PUNT_CLASS];
	struct table_limits limits;        /* room in tables; of routes 0: no limit */
	unsigned int checkpoint_max_age_s; /* 0: none */
	bool keep_nics; /* a process of its own has them over planned restarts */
	char control_socket[108];
	bool metrics_on;
	struct sockaddr_storage metrics_listen;
	bool hugepages;
	unsigned int memory_mib;
	bool fib_per_node; /* a copy of the FIB on each NUMA node that forwards */
	char plugin[CONFIG_PLUGINS_MAX][256]; /* shared objects for the EAL to load */
	unsigned int n_plugin;
	bool poll_always;
	unsigned int rx_burst, tx_burst; /* packets */
	enum log_level log_level;
};

/* The port of that name, or NULL. */
static inline const struct config_port *
config_port(const struct config *conf, const char *tap)
{
	for (unsigned int i = 0; i < conf->n_port; i++)
		if (strcmp(conf->port[i].tap, tap) == 0)
			return &conf->port[i];
	return NULL;
}

/* Receive queues that the file asks for; 0: as many as there are forwarders, or fewer. */
static inline unsigned int
config_port_queues(const struct config_port *port)
{
	return port->n_rxq != 0 ? port->n_rxq : port->n_core;
}

#endif
