/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fpm_hook: the packet that a program of `fpmctl hook` gets, and the verdicts that it
 * returns. This header is for the daemon and for programs. It needs no other header of the
 * project:
 *
 *     clang -target bpf -mcpu=v2 -O2 -ffreestanding -I DIRECTORY -c program.c
 *
 * A program is one function, `uint64_t name(struct fpm_hook *hook)`. It has no loops and no
 * global variables. If it calls a function, the compiler has to inline the call: declare
 * the function `static inline __attribute__((always_inline))`.
 */
#ifndef BASE_FPM_HOOK_H
#define BASE_FPM_HOOK_H

#include <stdint.h>

#define FPM_HOOK_OCTETS   256 /* octets of a packet that a program can read */
#define FPM_HOOK_COUNTERS 16
#define FPM_HOOK_WORDS    512

/*
 * The argument of a program. The program may write to all of it. The daemon sets the fields
 * before `counter` for each packet, so values that a program writes there have no effect.
 */
struct fpm_hook {
	uint32_t length;  /* octets of the IP packet, its header included */
	uint32_t octets;  /* octets of it in packet[], at most FPM_HOOK_OCTETS */
	uint32_t family;  /* 4 or 6 */
	uint32_t ifindex; /* of the receiving interface, as in `ip link` */
	/*
	 * The IP packet from the first octet of its header on, network order, then zeros.
	 */
	uint8_t packet[FPM_HOOK_OCTETS];
	/*
	 * Memory of the program, zero when it is loaded. Each forwarder has its own.
	 * `fpmctl show hooks` adds up the counters of all forwarders.
	 */
	uint64_t counter[FPM_HOOK_COUNTERS];
	uint64_t word[FPM_HOOK_WORDS];
};

/*
 * The value that a program returns: FPM_PASS, FPM_DROP, or the sum of FPM_DSCP() and
 * FPM_TABLE(). A value with other bits counts as an error, and the packet is dropped.
 */
#define FPM_PASS     0ull
#define FPM_DROP     1ull /* drop the packet without an ICMP error */
#define FPM_SET_DSCP 2ull
/* Pass, with this DSCP, 0 to 63. */
#define FPM_DSCP(dscp) (FPM_SET_DSCP | (uint64_t)((dscp)&63) << 8)
#define FPM_SET_TABLE  4ull
/*
 * Pass, and look the destination up in this table: the table of a VRF, a table that a rule
 * of the kernel names, or main (254). If the router has no FIB for the table, the packet is
 * dropped. It is also dropped if the route leads to the kernel, which would look the packet
 * up in its own tables. FPM_TABLE() has no effect on a packet whose destination is an
 * address of this router, or a broadcast address, in the table of the receiving interface.
 */
#define FPM_TABLE(table) (FPM_SET_TABLE | (uint64_t)(uint32_t)(table) << 32)

/* Return the number that the two, or four, octets at `at` have in network order. */
static inline __attribute__((always_inline)) uint16_t
fpm_be16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static inline __attribute__((always_inline)) uint32_t
fpm_be32(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

#endif
