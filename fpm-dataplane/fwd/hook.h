/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hook: the stage between parse and lookup, in which a program of `fpmctl hook` decides. It
 * is called only while there is a program.
 *
 * Private to fwd/.                                                              [fwd-n]
 */
#ifndef FWD_HOOK_H
#define FWD_HOOK_H

#include "fwd/burst.h"

/*
 * Run the program of the ingress interface, if it has one, on each IP packet of the burst
 * that has no verdict yet and came without labels. A packet may be dropped, or get a DSCP
 * or another table for its lookup. A packet that an end point of SRv6 sends through the
 * stages again has passed the program already.
 */
void fwd_hook(struct burst *b);

/*
 * Replace the paths of the packets for which the program chose a table, after the lookup.
 * The adjacency stage then looks up these packets in that table. Packets to this router,
 * and to broadcast, keep their paths.
 */
void fwd_hook_paths(struct burst *b);

/*
 * Drop each packet for which the program chose a table if the packet would go to the
 * kernel. The kernel would look it up in its own tables, and forward it by another path.
 */
void fwd_hook_keep(struct burst *b);

#endif
