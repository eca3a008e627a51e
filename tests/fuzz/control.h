/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An input of fuzz_fpm_rib is a stream of FPM with control frames between the frames of
 * FPM. A control frame has the header of an FPM frame, with the type CONTROL_TYPE. Octets
 * that are no well-formed frame go to the frame cutter unchanged. So a captured stream of
 * FPM is an input.
 */
#ifndef CONTROL_H
#define CONTROL_H

#include <stddef.h>
#include <stdint.h>

#define CONTROL_TYPE 0xeeu

/*
 * The payload of a control frame consists of pairs of octets: an operation of this list and
 * its argument, `arg`.
 */
enum control {
	CONTROL_ROUND,  /* run all rounds of rib; no grace period ends */
	CONTROL_SETTLE, /* end grace periods, deliver all replies, check the invariants */
	/* Link arg % 4 is up, or down (bit 3), or gone (bit 4). Bit 5: it is no port. */
	CONTROL_LINK,
	/* Add, or remove (bit 3), the IPv4 or IPv6 (bit 2) address of link arg % 4. */
	CONTROL_ADDR,
	/* Watched neighbor arg % 8 answers (bit 7) or fails. Bit 6: it is unresolved. */
	CONTROL_NEIGH,
	CONTROL_SESSION, /* end the connection, begin another one; 1: from another zebra */
	CONTROL_TIME,    /* arg seconds pass */
	CONTROL_SEGMENT, /* pass the following octets in pieces of arg octets; 0: whole */
	CONTROL_ASK,     /* query the routes, the next hops and the groups of rib */
	/* neigh withholds its replies to requests to watch (bit 0), to free (bit 1). */
	CONTROL_HOLD,
	CONTROL_MEMORY, /* arg more allocations of the tries succeed; 255: all succeed */
	CONTROL_AUDIT,  /* run the audit (1: with repair): it must find no difference */
	/* Break the FIB at route arg / 4: the audit must find and repair it. */
	CONTROL_BREAK,
	/* rib pauses, and the limit of its queue is arg / 2 KiB; 0: rib continues. */
	CONTROL_LIMIT,
	CONTROL_N
};

#endif
