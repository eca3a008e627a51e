/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * preflight: what a start needs of the machine, tried before anything is made.
 */
#ifndef START_PREFLIGHT_H
#define START_PREFLIGHT_H

#include <stdbool.h>

#include "config/config.h"

/*
 * Are there enough file descriptors, can the addresses be listened on, can the control socket be
 * made, and does no other daemon answer on it? Of a successor (restart/handover.h) only the
 * first: the others are its predecessor's still, and tried when that one has let go of
 * them. Of the next one of a daemon that is gone not the addresses: it forwards without
 * them, and tries them until they are free. One that ends just then is waited for. A
 * refusal is logged as one sentence, and a warning a port whose MTU leaves it without IPv6.
 * What is tried is given back at once: the threads open their own, and another may still be
 * quicker.
 *                                                                                 [main]
 * Returns 0 or -errno.
 */
int preflight(const struct config *conf, bool successor);
int preflight_listen(const struct config *conf); /* all but the first */

#endif
