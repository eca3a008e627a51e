/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hook: the stage between parse and lookup, in which a program of `fpmctl hook` decides. It is
 * called only while there is a program.
 *
 * Private to fwd/.                                                              [fwd-n]
 */
#ifndef FWD_HOOK_H
#define FWD_HOOK_H

#include "fwd/burst.h"

/*
 * Run the program of the ingress interface, if it has one, on each IP packet of the burst
 * that has no verdict yet and came without labels. A packet may get DROP_hook, or a DSCP.
 */
void fwd_hook(struct burst *b);

/*
 * Replace the paths of the packets for which the program chose a table, after the lookup. The
 * adjacency stage then looks them up there.
 */
void fwd_hook_paths(struct burst *b);

#endif
