/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * few: all stages of a short burst, see few.c. Private to fwd/.                [fwd-n]
 */
#ifndef FWD_FEW_H
#define FWD_FEW_H

#include "fwd/burst.h"

#define FWD_FEW_MAX 8 /* packets; longer bursts take as long in the stages */

/*
 * Forward a burst of at most FWD_FEW_MAX packets. Requires a call of burst_look() before.
 * If the burst has to pass the stages, it changes no packet and returns false.
 */
bool fwd_few(struct burst *b);

#endif
