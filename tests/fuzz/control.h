/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An input of fuzz_fpm_rib: FPM octets, and between them control frames, which have the
 * envelope of FPM with a type of their own. Octets that are not well-formed go to the frame
 * cutter unchanged. A captured stream is an input.
 */
#ifndef CONTROL_H
#define CONTROL_H

#include <stddef.h>
#include <stdint.h>

#define CONTROL_TYPE 0xeeu

/* The payload is pairs of octets: an operation of this list and its argument, `arg`. */
enum control {
	CONTROL_ROUND,   /* commit, no grace period */
	CONTROL_SETTLE,  /* end grace periods, deliver all replies, check the invariants */
	CONTROL_LINK,    /* link arg % 4: up or down (bit 3), gone (bit 4), port (bit 5) */
	CONTROL_ADDR,    /* add (bit 3) or remove the address of link arg % 4 */
	CONTROL_NEIGH,   /* watched neighbor arg % 8: answers (bit 7) or fails */
	CONTROL_SESSION, /* end the connection, begin another one; 1: from another zebra */
	CONTROL_TIME,    /* arg seconds pass */
	CONTROL_SEGMENT, /* pass the following octets in pieces of arg octets; 0: whole */
	CONTROL_ASK,     /* show everything */
	CONTROL_HOLD,    /* neigh withholds replies to requests to watch (1), to free (2) */
	CONTROL_MEMORY,  /* arg more allocations of the tries succeed; 255: all succeed */
	CONTROL_AUDIT,   /* run the audit: it must find no difference */
	/* Break the FIB at route arg / 4: the audit must find and repair it. */
	CONTROL_BREAK,
	/* rib pauses, the limit of the queue is arg / 2 KiB; 0: rib continues. */
	CONTROL_LIMIT,
	CONTROL_N
};

#endif
