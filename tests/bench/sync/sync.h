/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Other ways to keep forwarders and the writer of the FIB apart, each linked into a daemon of
 * its own in place of liburcu's QSBR (its functions are calls into a library, so ours with the
 * same names come first). Forwarder and control threads are the daemon's own object files.
 *
 * A reader's critical section is a round of its loop: from one quiescent state to the next.
 */
#ifndef SYNC_H
#define SYNC_H

#include <stdint.h>

#include "../forward/page.h"

/* In the file that SYNC_PAGE names; bench_sync.py knows this layout too. */
struct sync_page {
	uint64_t tsc_hz;           /* W:publisher */
	uint32_t every_us;         /* W:bench publish so often; 0: never */
	uint32_t without;          /* W:bench no synchronisation now (turns.c) */
	uint64_t published;        /* W:publisher */
	uint64_t took[PAGE_SLOTS]; /* W:publisher  by ticks until all saw it */
};

extern struct sync_page *sync_page; /* mapped before main() */

/* One of the files beside this one: wait until no reader can have what it had before.
 * [publisher, a thread that reads nothing] */
void sync_publish(void);

#endif
