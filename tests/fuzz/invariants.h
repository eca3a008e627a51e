/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What holds in a rib after every round, whatever zebra said.
 */
#ifndef INVARIANTS_H
#define INVARIANTS_H

#include <stdio.h>
#include <stdlib.h>

struct rig;

/* abort() instead of assert(): it must hold in any build. */
#define MUST(claim)                                                                 \
	do {                                                                        \
		if (!(claim)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #claim); \
			abort();                                                    \
		}                                                                   \
	} while (0)

/* After rig_settle(): counts are what they count, and nothing names what is gone. */
void rib_must_be_sound(struct rig *g);

#endif
