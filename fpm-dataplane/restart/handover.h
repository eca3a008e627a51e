/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handover: a requested restart without a pause in forwarding. The running daemon, the
 * predecessor, starts its successor: the program of its command line, after an upgrade the new
 * one. The successor prepares while the predecessor forwards. They exchange single octets over a
 * socket pair:
 *
 *   predecessor                              successor
 *   starts the successor                ->   reads the configuration, starts DPDK, makes
 *                                            packet buffers, opens ports
 *                                       <-   PREPARED: from here on it can hardly fail
 *   quiesces: closes FPM, control socket
 *   and metrics; rib digests what zebra
 *   sent, sweeps nothing; the checkpoint
 *   stands still
 *   QUIESCED                            ->   restores the checkpoint, asks the kernel
 *                                       <-   READY
 *   names it to the service manager
 *   COMMITTED                           ->   from here on it forwards in any case
 *   its forwarders and punt end
 *   STOPPED                             ->
 *   closes devices that cannot be open
 *   twice (NICs)
 *   CLOSED                              ->   opens those; forwards, reads TAPs, listens
 *
 * A successor that does not get ready is killed, and the predecessor resumes as if no restart
 * had been requested. A successor whose predecessor dies before COMMITTED ends. After COMMITTED
 * the death of the predecessor counts as its end, and a predecessor that hangs is killed: when
 * it has not stopped HANDOVER_STOP_MS after COMMITTED, or has not closed its devices
 * HANDOVER_CLOSE_MS after STOPPED.                                                [main]
 */
#ifndef RESTART_HANDOVER_H
#define RESTART_HANDOVER_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "config/config.h"
#include "port/port.h"
#include "restart/quiesce.h"

#define HANDOVER_STOP_MS  3000  /* for a burst, or 100 ms of sleep */
#define HANDOVER_CLOSE_MS 30000 /* for all its devices */

/* The daemon that hands over. */
struct predecessor {
	char **argv;             /* of the successor; argv[0] is the program */
	sigset_t born_with;      /* the signal mask that the successor starts with */
	const struct port *port; /* PORT_SLOTS of them, whose TAPs the successor inherits */
	int checkpoint_fd;       /* that the successor inherits; -1: none */
	struct quiesce quiesce;
	void (*stop_forwarding)(void); /* end forwarders and punt */
	void (*close_exclusive)(void); /* close devices that cannot be open twice */
	void (*reload)(void); /* make the reload that was put off: no successor came */
};

enum handover {
	HANDOVER_DONE,    /* the successor forwards: end, without a word */
	HANDOVER_SLOW,    /* there is no room for two: end, and be started again */
	HANDOVER_REFUSED, /* it could not: nothing has changed, go on */
};

/*
 * Hand over, from the start of a successor to CLOSED. The log says why a restart is refused, and
 * clients that asked for one get the same text (sd_refusal_add()). A signal that ends the
 * daemon is left pending and cancels the handover: HANDOVER_REFUSED.
 */
enum handover handover_to_successor(const struct predecessor *old);

/* The predecessor's last act: pass a reload (SIGHUP) that came meanwhile to the successor. */
void handover_pass_on_reload(void);

/* The daemon that takes over. */
struct successor {
	int sock; /* to the predecessor; closed when the handover has succeeded */
	const struct config *conf;
	struct worker *rib, *neigh; /* prepared, not launched */
	struct port *port; /* array, opened before if all ports can be open twice */
	unsigned int n_port;
	bool shared; /* all ports can be open twice */
	/* Has rib been out of memory since its start? rib_was_short() of rib/rib.h. */
	bool (*rib_was_short)(const struct worker *rib);
	void (*mistrust)(void); /* the predecessor died, or was killed, after COMMITTED */
};

/*
 * Take over from the predecessor, from PREPARED to CLOSED: rib is restored then, and neigh runs
 * if the ports are shared. Returns 0 when there is no other daemon any more, or -errno; -EPIPE:
 * the predecessor died before COMMITTED.
 */
int handover_from_predecessor(const struct successor *next);

/* Process id of the predecessor behind `sock`; 0: not known, or `sock` is -1. */
pid_t predecessor_pid(int sock);

#endif
