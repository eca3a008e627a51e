/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Describe a frame in the files that bench_frames writes and net_bench reads: a
 * destination, and the port by which the frame must leave. Addresses are in network order,
 * the other fields in host order.
 */
#ifndef FRAME_H
#define FRAME_H

#include <assert.h>
#include <stdint.h>

struct frame4 {
	uint8_t dst[4];
	uint16_t checksum; /* of the IPv4 header; set by the port in its copy in memory */
	uint16_t port;
};

struct frame6 {
	uint8_t dst[16];
	uint16_t port;
	uint8_t reserved[6];
};

static_assert(sizeof(struct frame4) == 8 && sizeof(struct frame6) == 24, "no padding");

#endif
