/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * claim: mark the kernel interface behind a port of net_af_packet as used by this daemon.
 * AF_PACKET gives each frame to all of its readers, so two daemons with one interface would
 * forward each packet twice.
 *
 * A claim is a listening socket in the abstract namespace. That namespace belongs to the
 * network namespace, as the interface does, and the kernel releases the name when the
 * process ends.
 */
#ifndef PORT_CLAIM_H
#define PORT_CLAIM_H

#include <sys/types.h>

/*
 * Name the predecessor of this daemon, which may have claims until it ends; 0: there is none.
 *                                                          [main, before manage runs]
 */
void claim_allow(pid_t predecessor);
/* Return the process that claim_allow() named last, or 0.      [main, manage, nicd] */
pid_t claim_allowed(void);

/*
 * Claim an interface of this network namespace. Returns a descriptor; -1 if there is no such
 * interface, if the predecessor still has it, or if no claim can be made; or -EBUSY with a
 * sentence in `why`. If a process that has the claim is ending, the call waits for its end, up to
 * two seconds.                                              [thread in our own namespace]
 */
int claim_take(const char *interface, char *why, unsigned int why_size);

/*
 * Close the connections of processes that asked for the owner of the claim. So they learn that
 * this process runs, and the queue of connections does not become full.
 *                                                                           [manage]
 */
void claim_answer(int claim);

#endif
