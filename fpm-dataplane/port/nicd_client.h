/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nicd_client: NICs that a process of their own keeps (nicd/server.c), so that links stay
 * up over planned restarts. It is the primary of DPDK's multi-process support: it attaches,
 * configures, starts and closes the devices and is asked what only it may do with them. The
 * daemon is a secondary: its forwarders send and receive by the same queues in shared
 * memory, and ask nobody.
 *
 * A request and its reply are a record each of a SOCK_SEQPACKET pair, one at a time a pair. A
 * daemon has two, so that who opens a device keeps nobody waiting; its successor gets a third
 * from it (NICS_PAIR). Both ends are of this machine and, but for an upgrade, of one program:
 * `layout` and DPDK's version tell whether they understand each other.
 */
#ifndef PORT_NICD_CLIENT_H
#define PORT_NICD_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "port/port.h"

/* Of another one nothing is understood. */
#define NICS_LAYOUT                                    \
	((uint32_t)sizeof(struct nics_request) << 16 | \
	 (uint32_t)(sizeof(struct nics_reply) & 0xfff) << 4 | 1u)

#define NICS_FD "nics" /* name of the inherited socket to it (base/sd_notify.h) */

#define NICS_WHY_STRLEN 256
#define NICS_CLIENTS    2 /* daemons at a time: one, and its successor */

enum nics_op {
	NICS_HELLO, /* who are you, and who am I? */
	NICS_PAIR, /* here is one end more (SCM_RIGHTS); the first pair of its daemon if `yes` */
	NICS_KEPT, /* is the device open, as `conf` wants it? then it waits for NICS_OPEN */
	NICS_OPEN, /* open it, or leave it open; `port` is as it is then */
	NICS_STATS,
	NICS_LINK_UP,
	NICS_SET_MTU,
	NICS_SET_MAC,
	NICS_ADD_MAC,
	NICS_TAKE_TAGS,
	NICS_BYE, /* all ends: close the devices, and end */
};

struct nics_request {
	uint32_t layout;
	enum nics_op op;
	bool yes;
	uint8_t mac[6];
	unsigned int mtu_bytes;
	struct port_conf conf; /* its TAP is none of that process's */
	struct port port;
};

struct nics_reply {
	uint32_t layout;
	int rc;
	bool yes;
	/* NICS_HELLO */
	pid_t pid;
	unsigned int client; /* 0 .. NICS_CLIENTS - 1: other than the other daemon's */
	uint32_t began_with; /* eal_sum() of its configuration */
	char dpdk[64], prefix[32];

	char why[NICS_WHY_STRLEN];
	struct port_stats stats;
	struct port port;
};

/* --- in the daemon ------------------------------------------------------------------------- */

/*
 * Speak by `sock`, ours from now on. Returns 0 with what the other one says of itself, or -errno;
 * -EPROTO: it is of another version.                                              [main]
 */
int nics_meet(int sock, struct nics_reply *hello);

/* Are all NICs those of that process?                                      [any thread] */
bool nics_are_kept(void);

/* A way to that process for a successor, the caller's; -1: there is none.        [main] */
int nics_pair(void);

/*
 * Speak no more. `bye`: it is to close all devices and end, as it does when nobody speaks
 * to it any more.                                                                 [main]
 */
void nics_part(bool bye);

/* Is the device of a port open already, as it is wanted? False when that cannot be told. [main] */
bool nics_has(const struct port_conf *conf);

/* As nic_open() (port/nic.h). It is closed when no daemon wants it any more.       [main] */
int nics_open(struct port *port, const struct port_conf *conf, char *why,
	      unsigned int why_size);

/* As in port.h.                                                            [any thread] */
int nics_stats(const struct port *port, struct port_stats *st);
bool nics_link_up(const struct port *port);
int nics_set_mtu(const struct port *port, unsigned int mtu_bytes);
int nics_set_mac(const struct port *port, const uint8_t mac[6]);
int nics_add_mac(const struct port *port, const uint8_t mac[6]);
bool nics_take_tags(const struct port *port);

/* --- of both ------------------------------------------------------------------------------- */

/* A record of `len` octets, with a descriptor (-1: none). Returns 0 or -errno. */
int nics_send(int sock, const void *record, size_t len, int fd);

/* The next one, of exactly `len` octets, and its descriptor in *fd (-1: none), which may be
 * NULL. Returns 0, -EPIPE: nobody speaks any more, or -EPROTO. */
int nics_recv(int sock, void *record, size_t len, int *fd);

#endif
