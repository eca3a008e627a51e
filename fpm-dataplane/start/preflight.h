/* SPDX-License-Identifier: BSD-3-Clause */
/* preflight: check the needs of a start before any object is created. */
#ifndef START_PREFLIGHT_H
#define START_PREFLIGHT_H

#include <stdbool.h>

#include "config/config.h"

/*
 * Make room on the stacks of this thread and of threads that are made later: glibc gives
 * them the soft limit (RLIMIT_STACK) that the process had at its start. Without room a
 * process ends by SIGSEGV, without a message. Call it before the configuration is read. A
 * failure is logged. Return 0 or -errno. [main]
 */
int preflight_stack(void);

/*
 * Keep the control namespace open (netns_keep()). Check the number of descriptors, that
 * threads start, the addresses of the listeners, the place of the control socket, and that
 * no other daemon answers on it.
 *
 * A successor (restart/handover.h) checks only descriptors, threads and the place of the
 * control socket, because its predecessor still has the addresses and the socket;
 * preflight_listen() checks those when the predecessor has released them. A daemon that the
 * service manager started again does not check the addresses: it forwards without them, and
 * tries them until they are free. The check of the control socket waits for a daemon that
 * is just ending.
 *
 * The log has the reason of a refusal, and a warning for a port whose MTU is too small for
 * IPv6. All sockets of the check are closed at once, and the threads open their own
 * later, so another program may take an address in between. Return 0 or -errno. [main]
 */
int preflight(const struct config *conf, bool successor);
/*
 * The checks of preflight() except the checks of descriptors and threads. A successor also
 * removes a control socket to which it is denied access: an operator has changed the owner
 * or mode of its predecessor's socket.
 */
int preflight_listen(const struct config *conf, bool successor);

#endif
