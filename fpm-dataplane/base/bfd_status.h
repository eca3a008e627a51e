/* SPDX-License-Identifier: BSD-3-Clause */
/* bfd_status: facts about BFD in the dataplane for metrics and the doctor. */
#ifndef BASE_BFD_STATUS_H
#define BASE_BFD_STATUS_H

#include <stdatomic.h>
#include <stdint.h>

/* The names of enum bfd_state, in its order. */
#define BFD_STATUS_STATES                          \
	{                                          \
		"admin-down", "down", "init", "up" \
	}

/* W:bfd  R:ui, relaxed */
struct bfd_status {
	_Atomic uint32_t connections; /* open connections to bfdd */
	_Atomic uint32_t sessions[4]; /* by state, including sessions that are not served */
	/* sessions that neither the forwarders nor the kernel serve */
	_Atomic uint32_t not_served;
	/* changes from Up to Down of all sessions, including ended sessions */
	_Atomic uint64_t downs;
	_Atomic uint64_t prunes; /* times that a next hop was taken out of all groups */
	_Atomic uint64_t lends;  /* times that a forwarder got the priority of thread bfd */
	_Atomic uint64_t rx_packets, tx_packets; /* control packets of all sessions */
};

extern struct bfd_status bfd_status;

#endif
