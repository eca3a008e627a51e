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

/* Payload: pairs of octets, what and its argument. */
enum control {
	CONTROL_ROUND,   /* commit, no grace period */
	CONTROL_SETTLE,  /* grace periods over, all answered; invariants are checked */
	CONTROL_LINK,    /* link arg % 4: up or down (bit 3), gone (bit 4), port (bit 5) */
	CONTROL_ADDR,    /* address of link arg % 4: there or not (bit 3) */
	CONTROL_NEIGH,   /* neighbor arg % 8 of those watched: answers or not (bit 7) */
	CONTROL_SESSION, /* the connection ends, another begins; 1: of another zebra */
	CONTROL_TIME,    /* arg seconds pass */
	CONTROL_SEGMENT, /* from here in pieces of arg octets; 0: whole */
	CONTROL_ASK,     /* show everything */
	CONTROL_HOLD,    /* neigh does not answer what it watches (1), what it frees (2) */
	CONTROL_MEMORY,  /* the tries get memory arg times more; 255: always */
	CONTROL_AUDIT,   /* all is compared: nothing may differ */
	CONTROL_BREAK,   /* the FIB is made wrong at route arg / 4: found, and mended */
	CONTROL_LIMIT,   /* rib stands still, the queue has arg / 2 KiB; 0: it goes on */
	CONTROL_N
};

#endif
