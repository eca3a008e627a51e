/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * page: the file by which a benchmark and the ports of one forwarding program communicate.
 * Both map it. page.py reads the same layout: little-endian, with all padding named.
 */
#ifndef PAGE_H
#define PAGE_H

#include <assert.h>
#include <stdint.h>

#define PAGE_PORTS  8
#define PAGE_QUEUES 64   /* of a port, for each direction */
#define PAGE_SLOTS  1024 /* of a histogram of ticks: 16 for each octave */

/*
 * Receive queue i and transmit queue i of a port. Each count has one thread that writes it.
 */
struct page_queue {
	uint64_t rx;           /* W:port  frames handed to the program */
	uint64_t missed;       /* W:port  frames that were due and found no descriptor */
	uint64_t tx;           /* W:port  frames taken from the program */
	uint64_t wrong_port;   /* W:port  checked: the frame belongs to another port */
	uint64_t wrong_header; /* W:port  checked: TTL, checksum or MAC is wrong */
	uint64_t tid; /* W:port  the thread that receives, if the port has frames */
	uint64_t reserved[2];
};

struct page {
	uint64_t tsc_hz; /* W:port */
	uint32_t reserved;
	uint32_t run;   /* W:bench 0: no frames come in */
	uint32_t check; /* W:bench PAGE_LOOK, PAGE_TIME */
	uint32_t epoch; /* W:bench a change restarts counts and pace */
	uint64_t
		gap_q16; /* W:bench TSC ticks from frame to frame << 16; 0: as fast as taken */
	uint64_t limit;   /* W:bench number of frames in this epoch; 0: no limit */
	uint32_t family;  /* W:bench 4, 6, or 0: both in turn, if the port has both */
	uint32_t len;     /* W:bench octets of a frame with FCS; 0: the port's default */
	uint32_t window;  /* W:bench number of IPv4 frames of the file to use; 0: all */
	uint32_t burst;   /* W:bench most frames for each receive call; 0: no limit */
	uint32_t depth;   /* W:bench descriptors of a paced stream; 0: PAGE_DEPTH */
	uint32_t len_now; /* W:port  `len` of the last frames that were handed out */
	struct page_queue port[PAGE_PORTS][PAGE_QUEUES];
	/* W:port  frames by the ticks from their due time until they left */
	uint64_t latency[PAGE_SLOTS];
	uint64_t polls[PAGE_SLOTS]; /* W:port  paced: polls by ticks since the last poll */
};

#define PAGE_LOOK  1u   /* check: examine every frame that leaves */
#define PAGE_TIME  2u   /* check: measure the delay of paced frames */
#define PAGE_DEPTH 1024 /* descriptors of a common NIC's queue */

static_assert(sizeof(struct page) ==
		      64 + PAGE_PORTS * PAGE_QUEUES * 64 + 2 * PAGE_SLOTS * 8,
	      "as page.py has it");

/* Return the bucket of a time. */
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
