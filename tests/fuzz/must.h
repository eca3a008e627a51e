/* SPDX-License-Identifier: BSD-3-Clause */
/* Abort if a claim of a fuzzer does not hold. The message names file and line. */
#ifndef MUST_H
#define MUST_H

#include <stdio.h>
#include <stdlib.h>

/* abort() instead of assert(): it must hold in any build. */
#define MUST(claim)                                                                 \
	do {                                                                        \
		if (!(claim)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #claim); \
			abort();                                                    \
		}                                                                   \
	} while (0)

#endif
