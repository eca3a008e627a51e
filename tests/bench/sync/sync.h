/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Other methods to synchronize forwarders with the writer of the FIB. Each is linked into a
 * daemon in place of liburcu's QSBR. liburcu's functions are calls into a library, so
 * functions with the same names in the program take precedence. The forwarder and control
 * threads are the daemon's own object files.
 *
 * The critical section of a reader is a round of its loop: from one quiescent state to the
 * next.
 */
#ifndef SYNC_H
#define SYNC_H

#include <stdint.h>

#include "../forward/page.h"

/* The content of the file SYNC_PAGE. bench_sync.py reads the same layout. */
struct sync_page {
	uint64_t tsc_hz;    /* W:publisher */
	uint32_t every_us;  /* W:bench microseconds between publications; 0: never */
	uint32_t without;   /* W:bench 1: no synchronization now (turns.c) */
	uint64_t published; /* W:publisher */
	/* W:publisher  number of publications by the ticks that they took: page_slot() */
	uint64_t took[PAGE_SLOTS];
};

extern struct sync_page *sync_page; /* mapped before main() starts */

/*
 * Wait until no reader can use an object from before this call. One of the files beside
 * this one defines it. Called by the publisher, a thread that reads nothing.
 */
void sync_publish(void);

#endif
