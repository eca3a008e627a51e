/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handover: a restart that was asked for, without a pause. The daemon starts another of itself
 * (the program of its command line: after an upgrade, the new one), which prepares while the
 * old one still forwards:
 *
 *   the old one                              its successor
 *   starts it                           ->   reads the configuration, starts DPDK, makes
 *                                            packet buffers, opens ports
 *                                       <-   PREPARED: from here on it can hardly fail
 *   closes FPM, control socket, metrics;
 *   digests what zebra has said; no
 *   sweep goes on, the checkpoint rests
 *   FROZEN                              ->   restores the checkpoint, asks the kernel
 *                                       <-   READY
 *   names it to the service manager
 *   NAMED                               ->   from here on it forwards, come what may
 *   its forwarders and punt end
 *   RESTED                              ->
 *   closes devices that cannot be open
 *   twice (NICs)
 *   GONE                                ->   opens those; forwards, reads TAPs, listens
 *
 * A successor that does not get ready is killed, and the old one goes on as if nobody had asked
 * for one; whose predecessor dies before NAMED, ends. After it a predecessor that dies is gone
 * all the same, and one that hangs is killed: when it does not rest SUCCEED_REST_MS after NAMED,
 * or is not gone SUCCEED_GO_MS after RESTED.                                      [main]
 */
#ifndef RESTART_HANDOVER_H
#define RESTART_HANDOVER_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "restart/fdstore.h"

#define SUCCEED_REST_MS 3000  /* for a burst, or 100 ms of sleep */
#define SUCCEED_GO_MS   30000 /* for all its devices */

struct predecessor {
	char **argv; /* argv[0] is the program */
	const struct named_fd *kept;
	unsigned int n_kept;
	sigset_t born_with;   /* the signal mask */
	bool shares;          /* DPDK's memory, and locks there, with its successor */
	int (*freeze)(void);  /* 0, or -errno: it never will be */
	int (*thaw)(void);    /* undo that: 0 or -errno */
	void (*go_on)(void);  /* there is no successor: all is as before */
	void (*rest)(void);   /* end forwarding */
	void (*let_go)(void); /* of devices that only one can have */
};

enum handover {
	HANDOVER_DONE,    /* the successor forwards: end, without a word */
	HANDOVER_SLOW,    /* there is no room for two: end, and be started again */
	HANDOVER_REFUSED, /* it could not: nothing has changed, go on */
};

/*
 * Nothing has been begun, because of a change (restart/restart_lock.h): note and log why,
 * as below. Returns HANDOVER_REFUSED.
 */
#define SUCCEED_BUSY "a port is being changed, or its device starts or ends"
enum handover succeed_refuse(const char *why);

/*
 * In the old one, from beginning to GONE. Why a restart is refused is said in the log, and noted
 * for who has asked for it (service_refused()). A signal that ends us is left pending, and the
 * successor given up for it: HANDOVER_REFUSED.
 */
enum handover succeed_hand_over(const struct predecessor *old);

/* In the old one, as its last: reloads that it was told of meanwhile are its successor's. */
void succeed_pass_on(void);

/* In the successor: the old one's process id; 0: nobody knows, or `sock` is -1. */
pid_t succeed_whom(int sock);

/*
 * In the successor, whose way to the old one is `sock`. Returns 0: there is no other one by now,
 * or -errno, -EPIPE: it died when it was still the one that counts.
 */
struct heir {
	bool apart; /* it has to be gone with its process, not its devices alone */
	int (*prepare)(void);   /* when it is frozen; 0 or -errno */
	void (*discard)(void);  /* again and again until it is gone, and once more then */
	void (*orphaned)(void); /* it has died, or had to be killed, after NAMED */
};

int succeed_to(int sock, const struct heir *heir);

#endif
