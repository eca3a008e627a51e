/* SPDX-License-Identifier: BSD-3-Clause */
/* sflow_status: facts about sFlow for metrics. */
#ifndef BASE_SFLOW_STATUS_H
#define BASE_SFLOW_STATUS_H

#include <stdatomic.h>
#include <stdint.h>

/* W:sflow  R:ui, relaxed */
struct sflow_status {
	/* all collectors; collectors with errors */
	_Atomic uint32_t collectors, failing;
	_Atomic uint32_t rate;                        /* one packet in `rate`; 0: off */
	_Atomic uint64_t samples, discards, counters; /* sent, by kind */
	_Atomic uint64_t samples_over, discards_over; /* not sent: over the limit */
	_Atomic uint64_t datagrams, send_errors;      /* of all collectors */
	_Atomic uint64_t psample_samples;
};

extern struct sflow_status sflow_status;

#endif
