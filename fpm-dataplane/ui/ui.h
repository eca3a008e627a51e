/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ui: the control socket that fpmctl speaks to, and the metrics page.
 */
#ifndef UI_UI_H
#define UI_UI_H

#include <stdbool.h>
#include <sys/socket.h>

#include "base/worker.h"

struct fib;
struct port;
struct serving;
struct table_limits;

struct ui_conf {
	struct fib *fib;
	struct worker *rib, *neigh; /* MSG_QUERY goes there, MSG_REPLY comes back */
	struct worker *fpm;         /* MSG_REPLAY goes there */
	struct worker *trace;       /* MSG_QUERY of port/watch.h goes there */
	struct worker *manage;      /* MSG_QUERY of base/msg_manage.h goes there */
	const struct port *port;    /* array; statistics through port/port.h */
	unsigned int n_port;
	const struct serving *serving; /* array, one a forwarder; NULL with n_fwd 0 */
	const unsigned int *cpu;       /* array, of each forwarder */
	unsigned int n_fwd;
	const char *control_socket; /* path of a Unix stream socket, mode 0660 */
	bool metrics_on;
	struct sockaddr_storage metrics_listen;
	bool metrics_insist; /* start without that address, and try it until it can be had */
	const char *netns;   /* where the page is: FRR's; lives as long as ui */
	const char *version;
	const char *dpdk;                  /* its version, NULL: not told */
	const char *config_file;           /* NULL: not told */
	const char *fpm_listen;            /* "127.0.0.1:2620", NULL: not told */
	const struct table_limits *limits; /* of tables; outlives ui. NULL: the usual */
	bool hugepages;
	unsigned int memory_mib;
};

/*
 * Fill `w`; sockets are opened by the thread's init, so worker_start() returns -EADDRINUSE
 * when another daemon answers on the control socket (a stale one is replaced).
 * Strings and the ports outlive the thread. Returns 0 or -ENOMEM.                [main]
 */
int ui_setup(struct worker *w, const struct ui_conf *conf);

/*
 * After worker_free(), when no thread is left that could answer a query. `for_good`: nobody
 * takes our place. The socket's path goes with that, and is there all through a restart: who
 * waits for its end (ctl/cmd_restart.c) can tell the one from the other.             [main]
 */
void ui_teardown(struct worker *w, bool for_good);

#endif
