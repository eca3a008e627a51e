/* SPDX-License-Identifier: BSD-3-Clause */
/* ui: the control socket, which fpmctl uses, and the metrics page. */
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
	struct worker *rib, *neigh; /* receive MSG_QUERY, send MSG_REPLY back */
	struct worker *rtnl;        /* receives MSG_REPLAY */
	struct worker *fpm;         /* receives MSG_REPLAY */
	struct worker *trace;       /* receives MSG_QUERY of port/watch.h */
	struct worker *manage;      /* receives MSG_QUERY of base/msg_manage.h */
	struct worker *warn;        /* receives MSG_QUERY */
	struct worker *filter;      /* receives MSG_QUERY */
	struct worker *sflow;       /* receives MSG_QUERY */
	struct worker *bfd;         /* receives MSG_QUERY */
	const struct port *port;    /* array; statistics through port/port.h */
	unsigned int n_port;
	const struct serving *serving; /* one per forwarder; NULL with n_fwd 0 */
	const unsigned int *cpu;       /* one per forwarder */
	unsigned int n_fwd;
	const char *control_socket; /* path of a Unix stream socket, mode 0660 */
	bool metrics_on;
	struct sockaddr_storage metrics_listen;
	bool metrics_retry; /* start even if that address is in use, and retry */
	const char *netns;  /* control namespace, for the metrics page; outlives ui */
	const char *version;
	const char *dpdk;        /* version of DPDK; NULL: unknown */
	const char *config_file; /* NULL: unknown */
	const char *fpm_listen;  /* "127.0.0.1:2620"; NULL: unknown */
	const char *bfd_dplane;  /* "127.0.0.1:50700"; NULL: the key is absent */
	const struct table_limits
		*limits;                 /* limits of tables; outlives ui. NULL: defaults */
	const char *routes_from;         /* "both", "fpm" or "kernel" */
	const char *instructions;        /* used by the forwarders, see fwd_cpu_uses() */
	const char *instructions_best;   /* best ones of this CPU */
	const char *lookup_instructions; /* used by lookups, see fwd_cpu_lookups_use() */
	const char *lookup_instructions_best;
	/* summary of fpm-flowspec; NULL: filter.table lacks its table */
	const char *flowspec;
	bool hugepages;
	unsigned int memory_mib;
};

/*
 * Fill `w`. The init of the thread opens the sockets, so worker_start() returns -EADDRINUSE
 * when another daemon answers on the control socket (a stale socket is replaced). Strings
 * and ports must outlive the thread. Returns 0 or -ENOMEM.                          [main]
 */
int ui_setup(struct worker *w, const struct ui_conf *conf);

/*
 * Free the thread's data, after worker_free(), when no thread is left that could answer a
 * query. `for_good`: no successor takes over. Only in this case the path of the control
 * socket is removed. The path exists during a restart, so that a program that waits for the
 * end (ctl/cmd_restart.c) can tell a restart from a stop.                           [main]
 */
void ui_teardown(struct worker *w, bool for_good);

#endif
