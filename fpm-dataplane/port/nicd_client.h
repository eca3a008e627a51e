/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nicd_client: the daemon's side of fpm-nics (nicd/server.c), the process that keeps NICs
 * open so that links stay up over planned restarts. fpm-nics is the primary of DPDK's
 * multi-process support. It attaches, configures, starts and closes the devices, and does
 * for the daemon what only a primary may do. The daemon is a secondary. Its forwarders use
 * the queues in shared memory without any request.
 *
 * A request is one record on a SOCK_SEQPACKET pair, and so is its reply. A pair carries one
 * request at a time. A daemon has two pairs, so that a slow open does not delay other
 * requests. It makes a third pair for its successor (NICD_PAIR). Both ends are on this
 * machine and, except during an upgrade, of one version. `layout` and the version of DPDK
 * show whether they are compatible.
 */
#ifndef PORT_NICD_CLIENT_H
#define PORT_NICD_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "port/port.h"

/* A record of another layout is not read. */
#define NICD_LAYOUT                                    \
	((uint32_t)sizeof(struct nicd_request) << 16 | \
	 (uint32_t)(sizeof(struct nicd_reply) & 0xfff) << 4 | 2u)

#define NICD_FD "nics" /* name of the inherited socket to fpm-nics (base/sd_notify.h) */

#define NICD_WHY_STRLEN 256
#define NICD_CLIENTS    2 /* daemons at a time: one and its successor */

enum nicd_op {
	NICD_HELLO,   /* exchange versions, and get a client number */
	NICD_PAIR,    /* pass one end of a pair (SCM_RIGHTS); `yes`: for another daemon */
	NICD_IS_OPEN, /* ask if the device is open as in `conf`, and keep it open */
	NICD_OPEN,    /* open the device, or leave it open; the reply has it in `port` */
	NICD_STATS,
	NICD_LINK,
	NICD_SET_MTU,
	NICD_SET_MAC,
	NICD_ADD_MAC,
	NICD_TAKE_TAGS,
	NICD_BYE, /* close the devices and exit */
	/*
	 * New operations come last: fpm-nics may be older than the daemon, and refuses
	 * them.
	 */
	NICD_REMOVE_MAC,
	NICD_SET_LINK, /* `yes`: up */
};

struct nicd_request {
	uint32_t layout;
	enum nicd_op op;
	bool yes;
	uint8_t mac[6];
	unsigned int mtu_bytes;
	struct port_conf conf; /* fpm-nics does not use its TAP */
	struct port port;
};

struct nicd_reply {
	uint32_t layout;
	int rc;
	bool yes;
	/* NICD_HELLO */
	pid_t pid;
	unsigned int client; /* 0 to NICD_CLIENTS - 1, different from the other daemon's */
	uint32_t began_with; /* eal_hash() of the configuration fpm-nics started with */
	char dpdk[64], prefix[32];

	char why[NICD_WHY_STRLEN];
	struct port_stats stats;
	struct port_link link;
	struct port port;
};

/* --- in the daemon -------------------------------------------------------------------- */

/*
 * Begin to use `sock`, which the client owns from now on. Returns 0 and the reply to
 * NICD_HELLO, or -errno; -EPROTO: fpm-nics has another version.                  [main]
 */
int nicd_connect(int sock, struct nicd_reply *hello);

/* Return true if fpm-nics keeps the NICs.                                   [any thread] */
bool nicd_is_connected(void);

/* Return a new socket to fpm-nics for a successor. The caller owns it. -1: none.  [main] */
int nicd_pair(void);

/*
 * Close the sockets. `bye`: fpm-nics closes all devices and exits. Without `bye` fpm-nics
 * exits when no daemon is connected any longer, as after a crash.                [main]
 */
void nicd_disconnect(bool bye);

/*
 * Return true if the device of a port is open already with the settings of `conf`. False if
 * this is not known.                                                             [main]
 */
bool nicd_has_open(const struct port_conf *conf);

/*
 * Open a device as nic_open() (port/nic.h) does. fpm-nics closes it when no daemon needs it
 * any longer.                                                            [main, manage]
 */
int nicd_open(struct port *port, const struct port_conf *conf, char *why,
	      unsigned int why_size);

/* See the functions in port.h.                                              [any thread] */
int nicd_stats(const struct port *port, struct port_stats *st);
struct port_link nicd_link(const struct port *port);
int nicd_set_mtu(const struct port *port, unsigned int mtu_bytes);
int nicd_set_mac(const struct port *port, const uint8_t mac[6]);
int nicd_add_mac(const struct port *port, const uint8_t mac[6]);
int nicd_set_link(const struct port *port, bool up);
int nicd_remove_mac(const struct port *port, const uint8_t mac[6]);
bool nicd_take_tags(const struct port *port);

/* --- in both processes ---------------------------------------------------------------- */

/* Send a record of `len` octets with a descriptor (-1: none). Returns 0 or -errno. */
int nicd_send(int sock, const void *record, size_t len, int fd);

/*
 * Receive a record of exactly `len` octets and its descriptor in *fd (-1: none). `fd` may
 * be NULL. Returns 0, -EPIPE if the other end is closed, or -EPROTO.
 */
int nicd_recv(int sock, void *record, size_t len, int *fd);

#endif
