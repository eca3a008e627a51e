/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handover: a requested restart without a pause in forwarding. The running daemon, the
 * predecessor, starts its successor: the program of its command line, which is the new
 * version after an upgrade. The successor prepares while the predecessor forwards. They
 * exchange single octets over a socket pair:
 *
 *   predecessor                              successor
 *   starts the successor                ->   reads the configuration, starts DPDK, makes
 *                                            packet buffers, opens ports
 *                                       <-   PREPARED: from here on it can hardly fail
 *   quiesces: closes FPM, control socket
 *   and metrics; rib processes the queued
 *   events of zebra, sweeps nothing, and
 *   does not change the checkpoint
 *   QUIESCED                            ->   restores the checkpoint, reads kernel state
 *                                       <-   READY
 *   sends MAINPID= to the service manager
 *   COMMITTED                           ->   from here on it forwards in any case
 *   ends forwarders and punt
 *   STOPPED                             ->
 *   closes devices that cannot be open
 *   twice (NICs)
 *   CLOSED                              ->   opens these devices; forwards, reads TAPs,
 *                                            listens
 *
 * A successor that does not get ready is killed, and the predecessor resumes as if no
 * restart had been requested. A successor ends when its predecessor dies before COMMITTED.
 * After COMMITTED the death of the predecessor counts as its end, and the successor kills a
 * predecessor that has not stopped HANDOVER_STOP_MS after COMMITTED, or has not closed its
 * devices HANDOVER_CLOSE_MS after STOPPED.                                          [main]
 */
#ifndef RESTART_HANDOVER_H
#define RESTART_HANDOVER_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "config/config.h"
#include "port/port.h"
#include "restart/fdstore.h"
#include "restart/quiesce.h"

#define HANDOVER_STOP_MS  3000  /* a forwarder stops after a burst or a sleep of 100 ms */
#define HANDOVER_CLOSE_MS 30000 /* time to close all devices */

/* The daemon that hands over. */
struct predecessor {
	char **argv;             /* argv of the successor; argv[0] is the program */
	sigset_t start_mask;     /* the signal mask that the successor starts with */
	const struct port *port; /* PORT_SLOTS slots; the successor inherits the TAPs */
	int checkpoint_fd;       /* inherited by the successor; -1: none */
	struct named_fd thread_fd[FDSTORE_THREADS]; /* inherited by the successor, too */
	unsigned int n_thread_fd;
	struct quiesce quiesce;
	void (*stop_forwarding)(void); /* end forwarders and punt */
	void (*close_exclusive)(void); /* close devices that cannot be open twice */
	void (*reload)(void); /* carry out the delayed reload, after a failed handover */
};

enum handover {
	HANDOVER_DONE,    /* the successor forwards: end without STOPPING=1 */
	HANDOVER_SLOW,    /* no memory for two daemons: end, and be started again */
	HANDOVER_REFUSED, /* the handover failed: nothing has changed, continue */
};

/*
 * Hand over, from the start of a successor to CLOSED. The log has the reason for a refused
 * restart, and clients that requested the restart get the same text (sd_refusal_add()). A
 * signal that ends the daemon is left pending and cancels the handover: HANDOVER_REFUSED.
 */
enum handover handover_to_successor(const struct predecessor *old);

/*
 * Pass a reload (SIGHUP) that arrived during the handover to the successor. Call it last.
 */
void handover_pass_reload(void);

/* The daemon that takes over. */
struct successor {
	int sock; /* to the predecessor; closed when the handover has succeeded */
	const struct config *conf;
	struct worker *rib, *neigh; /* prepared, not launched */
	struct worker *rtnl;        /* launched */
	struct port *port;          /* array; open already if all ports can be open twice */
	unsigned int n_port;
	bool shared; /* all ports can be open twice */
	/*
	 * rib_had_nomem() of rib/rib.h: true if rib was ever out of memory since its start
	 */
	bool (*rib_was_short)(const struct worker *rib);
	void (*on_predecessor_death)(
		void); /* called if it died or was killed after COMMITTED */
};

/*
 * Take over from the predecessor, from PREPARED to CLOSED. On return rib is restored, and
 * neigh runs if the ports are shared. Returns 0 when the predecessor no longer forwards, or
 * -errno; -EPIPE: the predecessor died before COMMITTED.
 */
int handover_from_predecessor(const struct successor *next);

/* Return the process id of the predecessor behind `sock`; 0: unknown, or `sock` is -1. */
pid_t predecessor_pid(int sock);

#endif
