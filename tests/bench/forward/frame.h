/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What bench_frames writes into a file and net_bench hands out: a destination, and the port
 * that it must leave by. Addresses in network order, the rest as the machine has it.
 */
#ifndef FRAME_H
#define FRAME_H

#include <assert.h>
#include <stdint.h>

struct frame4 {
	uint8_t dst[4];
	uint16_t
		checksum; /* of the IPv4 header, which only the port knows: in its memory */
	uint16_t port;
};

struct frame6 {
	uint8_t dst[16];
	uint16_t port;
	uint8_t reserved[6];
};

static_assert(sizeof(struct frame4) == 8 && sizeof(struct frame6) == 24, "no padding");

#endif
