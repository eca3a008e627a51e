/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * page: what a benchmark and the ports of one forwarding program say to each other, in a
 * file that both map. page.py knows this layout too: little-endian, no padding that is not
 * named.
 */
#ifndef PAGE_H
#define PAGE_H

#include <assert.h>
#include <stdint.h>

#define PAGE_PORTS  8
#define PAGE_QUEUES 64   /* of a port, in either direction */
#define PAGE_SLOTS  1024 /* of a histogram of ticks: 16 to an octave */

/* Receive queue i and transmit queue i of a port; each count has one thread that writes. */
struct page_queue {
	uint64_t rx;     /* W:port  frames handed to the program */
	uint64_t missed; /* W:port  frames that a rate made due and no descriptor held */
	uint64_t tx;     /* W:port  frames taken from the program */
	uint64_t wrong_port;   /* W:port  checked: should have left elsewhere */
	uint64_t wrong_header; /* W:port  checked: TTL, checksum or MAC not as forwarded */
	uint64_t tid; /* W:port  the thread that receives, of a port that has frames */
	uint64_t reserved[2];
};

struct page {
	uint64_t tsc_hz; /* W:port */
	uint32_t reserved;
	uint32_t run;   /* W:bench 0: nothing comes in */
	uint32_t check; /* W:bench PAGE_LOOK, PAGE_TIME */
	uint32_t epoch; /* W:bench changed: begin to count and to pace anew */
	uint64_t
		gap_q16; /* W:bench TSC ticks from frame to frame << 16; 0: as fast as taken */
	uint64_t limit;  /* W:bench frames of this epoch, then silence; 0: no limit */
	uint32_t family; /* W:bench 4, 6, or 0: in turn, as far as there are frames */
	uint32_t len;    /* W:bench octets of a frame with FCS; 0: as the port was made */
	uint32_t
		window; /* W:bench only the first so many IPv4 frames of the file; 0: all */
	uint32_t burst; /* W:bench hand out at most so many at once; 0: what is asked for */
	uint32_t depth; /* W:bench descriptors of a rated stream; 0: PAGE_DEPTH */
	uint32_t
		len_now; /* W:port  `len` that is in force, by the last frames handed out */
	struct page_queue port[PAGE_PORTS][PAGE_QUEUES];
	uint64_t latency[PAGE_SLOTS]; /* W:port  frames by ticks from due to left */
	uint64_t polls[PAGE_SLOTS];   /* W:port  rated: polls by ticks since the last one */
};

#define PAGE_LOOK  1u   /* check: at every frame that leaves */
#define PAGE_TIME  2u   /* check: how late rated frames leave */
#define PAGE_DEPTH 1024 /* descriptors of a common NIC's queue */

static_assert(sizeof(struct page) ==
		      64 + PAGE_PORTS * PAGE_QUEUES * 64 + 2 * PAGE_SLOTS * 8,
	      "as page.py has it");

/* Bucket of a time. */
static inline unsigned int
page_slot(uint64_t ticks)
{
	unsigned int octave;

	if (ticks < 16)
		return (unsigned int)ticks;
	octave = 63 - (unsigned int)__builtin_clzll(ticks) - 4;
	return (octave + 1) * 16 + ((ticks >> octave) & 15);
}

#endif
