/* SPDX-License-Identifier: BSD-3-Clause */
/* rows: the rows of `show bfd` (keys: dist/openapi.yaml). No state, no side effects. */
#ifndef BFD_ROWS_H
#define BFD_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "base/prefix.h"

/* A session as operators see it. Strings are copied. */
struct bfd_row_in {
	struct ipaddr peer, local;
	uint8_t family;    /* 4 or 6 */
	bool has_local;    /* false: no local address is known yet */
	const char *dev;   /* NULL: several hops, or the session names no interface */
	const char *vrf;   /* NULL: table main */
	const char *state; /* "admin-down", "down", "init" or "up" */
	const char *by; /* the sender of the packets: "forwarders", "kernel"; NULL: none */
	const char *reason;        /* why the session is not served; NULL: it is served */
	uint8_t diag, remote_diag; /* RFC 5880, 4.1 */
	uint32_t discr, remote_discr, lid;
	uint8_t mult, remote_mult;
	uint32_t tx_us, rx_us;               /* configured intervals */
	uint32_t remote_tx_us, remote_rx_us; /* intervals that the peer announced */
	uint32_t interval_us;                /* in force, between packets that are sent */
	uint64_t detect_us;                  /* detection time in force; 0: none */
	uint32_t echo_us;                    /* between echo packets; 0: none are sent */
	bool multihop, echo, passive, shutdown;
	bool pruned; /* the next hop is out of all groups */
	uint64_t downs;
	uint64_t since_s; /* seconds since the last change of state */
	uint64_t rx_packets, tx_packets, rx_bytes, tx_bytes;
	uint64_t echo_rx_packets, echo_tx_packets, echo_rx_bytes, echo_tx_bytes;
};

/* Append the row of a session. */
void bfd_row(json_t *rows, const struct bfd_row_in *in);

#endif
