/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * page: what a benchmark and the ports of one forwarding program say to each other, in a
 * file that both map. bench_forward.py knows this layout (struct PAGE there): little-endian,
 * no padding that is not named.
 */
#ifndef PAGE_H
#define PAGE_H

#include <stdint.h>

#define PAGE_PORTS 16
#define PAGE_SLOTS 1024 /* of the latency histogram: 16 to an octave */

struct page_port {
	uint64_t rx;     /* W:port  frames handed to the program */
	uint64_t missed; /* W:port  frames that a rate made due and no descriptor held */
	uint64_t tx;     /* W:port  frames taken from the program */
	uint64_t wrong_port;   /* W:port  checked: should have left elsewhere */
	uint64_t wrong_header; /* W:port  checked: TTL, checksum or MAC not as forwarded */
	uint64_t
		first_tsc; /* W:port  when the first frame after `epoch` changed left here */
	uint64_t reserved[2];
};

struct page {
	uint64_t tsc_hz; /* W:port */
	uint32_t tid;    /* W:port  the thread that receives */
	uint32_t run;    /* W:bench 0: nothing comes in */
	uint32_t check;  /* W:bench look at every frame that leaves, and time rated ones */
	uint32_t epoch;  /* W:bench changed: begin to count and to pace anew */
	uint64_t
		gap_q16; /* W:bench TSC ticks from frame to frame << 16; 0: as fast as taken */
	uint64_t limit;  /* W:bench frames of this epoch, then silence; 0: no limit */
	uint32_t family; /* W:bench 4, 6, or 0: in turn, as far as there are frames */
	uint32_t reserved[5];
	struct page_port port[PAGE_PORTS];
	uint64_t latency[PAGE_SLOTS]; /* W:port  frames by ticks from due to left */
};

#endif
