/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watch: the stages while a session watches packets. walk.h has their sequence.
 *
 * Private to fwd/.                                                              [fwd-n]
 */
#ifndef FWD_WATCH_H
#define FWD_WATCH_H

#include "fwd/burst.h"

/*
 * Pass a burst through the stages and fill the records in b->rec: the stage that decided,
 * the result of the lookup, and the verdict.
 */
void fwd_walk_noted(struct burst *b);

/*
 * Pass a burst through the stages and copy the packets that sessions want to this
 * forwarder's ring.
 */
void fwd_walk_watched(struct burst *b);

#endif
