/* SPDX-License-Identifier: BSD-3-Clause */
/* dataplane: all objects that main.c creates and connects.                    [main] */
#ifndef DAEMON_DATAPLANE_H
#define DAEMON_DATAPLANE_H

#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/worker.h"
#include "config/config.h"
#include "fwd/fwd.h"
#include "manage/hotplug.h"
#include "manage/rxq_assign.h"
#include "port/packet_meta.h"
#include "port/port.h"
#include "port/rxq_set.h"

enum {
	W_RIB,
	W_RTNL,
	W_NEIGH,
	W_PUNT,
	W_FPM,
	W_UI,
	W_TRACE,
	W_MANAGE,
	W_WARN,
	W_FILTER,
	W_SFLOW,
	W_BFD,
	N_WORKER
};
enum end { END_FOR_GOOD, END_FAILED, END_RESTART /* a successor takes over */ };

struct dataplane {
	struct config conf, running; /* as read at the start; as changed by manage */
	bool poll_by_option;         /* by the option --poll forwarders never sleep */
	struct rte_mempool *pool;
	struct port port[PORT_SLOTS];
	unsigned int n_port;
	struct fwd_conf fwd[CONFIG_CORES_MAX];
	struct fwd_rings rings[CONFIG_CORES_MAX];
	struct serving serving[CONFIG_CORES_MAX];
	struct {
		alignas(64) _Atomic uint32_t n;
	} gleaned[CONFIG_CORES_MAX]; /* n_gleaned of each struct fwd_rings */
	struct rxq_assign rxq_assign;
	struct hotplug hotplug; /* used by main at the start, then by manage */
	struct fib *fib;
	struct bfd_table *bfd_table; /* NULL: BFD is off */
	struct hooks *hooks;
	struct watch *watch;
	struct watch *sampler; /* of sFlow */
	struct worker worker[N_WORKER];
	atomic_bool stop_fwd;
	struct {
		int fd;             /* checkpoint of the previous daemon; -1: none */
		unsigned int tries; /* earlier starts that began to read it */
	} last_checkpoint;          /* valid until forwarding begins */
	int predecessor;            /* socket to the predecessor; -1: there is none */
	/* each port can be open in two daemons at the same time */
	bool shared;
	char **argv; /* arguments of this process, for a successor */
	/* signals that main waits for; mask of this process before signals_begin() */
	sigset_t signals, start_mask;
};

#endif
