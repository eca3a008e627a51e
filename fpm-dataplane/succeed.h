/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * succeed: a restart that was asked for, without a pause. The daemon starts another of itself
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
 *   names it to the service manager;
 *   its forwarders and punt end
 *   GONE                                ->   forwards, reads TAPs, listens
 *
 * Devices that cannot be open twice (NICs) are closed before GONE and opened after it. A
 * successor that does not get ready is killed; whose predecessor dies, ends.       [main]
 */
#ifndef SUCCEED_H
#define SUCCEED_H

#include <signal.h>
#include <sys/types.h>

#include "keep.h"

struct predecessor {
	char **argv; /* argv[0] is the program */
	const struct kept *kept;
	unsigned int n_kept;
	sigset_t born_with;  /* the signal mask */
	int (*freeze)(void); /* 0 or -errno */
	void (*let_go)(void);
};

enum handover {
	HANDOVER_DONE,    /* the successor forwards: end, without a word */
	HANDOVER_SLOW,    /* it could not; end, and be started again */
	HANDOVER_REFUSED, /* it could not, nor could another: nothing has changed, go on */
};

/*
 * In the old one, from beginning to GONE. A signal that ends us is left pending, and the
 * successor given up for it: HANDOVER_SLOW.
 */
enum handover succeed_hand_over(const struct predecessor *old);

/*
 * In the successor, whose way to the old one is `sock`: `prepare` when that one is frozen (0
 * or -errno), `discard` again and again until it is gone, and once more then. Returns 0 or
 * -errno, -EPIPE: it has died.
 */
int succeed_to(int sock, int (*prepare)(void), void (*discard)(void));

#endif
