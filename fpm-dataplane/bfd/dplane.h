/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dplane: the messages between bfdd and a data plane (bfdd --dplaneaddr), version 1. Cut
 * messages off a byte stream and decode them, or write them. No side effects, no thread of
 * its own.
 *
 * Fields are in network order on the wire, and in host order in these structs.
 */
#ifndef BFD_DPLANE_H
#define BFD_DPLANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/prefix.h"
#include "bfd/fsm.h"

#define BFD_DPLANE_VERSION      1
#define BFD_DPLANE_HEADER_BYTES 8
#define BFD_DPLANE_MAX_BYTES    65535u /* of a message, header included */
#define BFD_DPLANE_IFNAME_BYTES 64

enum bfd_dplane_type {
	BFD_DPLANE_ECHO_REQUEST,
	BFD_DPLANE_ECHO_REPLY,
	BFD_DPLANE_ADD, /* also: update */
	BFD_DPLANE_DELETE,
	BFD_DPLANE_STATE_CHANGE,
	BFD_DPLANE_REQUEST_COUNTERS,
	BFD_DPLANE_COUNTERS,
};

/* Bits of bfd_dplane_session.flags. */
enum {
	BFD_DPLANE_MULTIHOP = 1,
	BFD_DPLANE_DEMAND = 2,
	BFD_DPLANE_CBIT = 4,
	BFD_DPLANE_ECHO = 8,
	BFD_DPLANE_IPV6 = 16,
	BFD_DPLANE_PASSIVE = 32,
	BFD_DPLANE_SHUTDOWN = 64,
};

/* Bits of bfd_dplane_state.remote_flags. */
enum {
	BFD_DPLANE_REMOTE_CBIT = 1,
	BFD_DPLANE_REMOTE_DEMAND = 2,
	BFD_DPLANE_REMOTE_MULTIPOINT = 4,
};

struct bfd_dplane_session {
	uint32_t flags;
	uint8_t family;         /* 4 or 6 */
	struct ipaddr src, dst; /* src: all zero if bfdd does not know it */
	uint32_t lid;           /* bfdd's number of the session */
	uint32_t min_tx_us, min_rx_us, min_echo_tx_us, min_echo_rx_us;
	uint32_t hold_time; /* no version of bfdd sets it */
	uint8_t ttl;        /* several hops: the least TTL of received packets */
	uint8_t mult;
	uint32_t ifindex;                         /* 0: the session names no interface */
	char ifname[BFD_DPLANE_IFNAME_BYTES + 1]; /* terminated; empty: no interface */
};

struct bfd_dplane_echo {
	uint64_t our_us, bfdd_us; /* the time of each side */
};

struct bfd_dplane_msg {
	uint16_t type; /* enum bfd_dplane_type, or an unknown number */
	uint16_t id;   /* the answer has the same id */
	uint16_t len;  /* octets, header included */
	bool known;    /* the union is filled; false: skip the message and count it */
	union {
		struct bfd_dplane_session session; /* ADD, DELETE */
		struct bfd_dplane_echo echo;       /* ECHO_REQUEST, ECHO_REPLY */
		uint32_t lid;                      /* REQUEST_COUNTERS */
	};
};

/* The state of a session, for bfdd. */
struct bfd_dplane_state {
	uint32_t lid;
	uint32_t remote_discr;
	uint32_t remote_flags;
	uint32_t remote_min_tx_us, remote_min_rx_us, remote_min_echo_rx_us;
	uint8_t state; /* enum bfd_state, ours */
	uint8_t remote_diag;
	uint8_t remote_mult;
};

struct bfd_dplane_counters {
	uint32_t lid;
	uint64_t control_in_octets, control_in_packets, control_out_octets,
		control_out_packets;
	uint64_t echo_in_octets, echo_in_packets, echo_out_octets, echo_out_packets;
};

/*
 * Cut the next message off a byte stream.
 *
 * buf  `len` octets as received; a buffer of BFD_DPLANE_MAX_BYTES holds any message
 * msg  out: the message; it points to nothing in `buf`. Untouched unless the return value
 * is > 0.
 *
 * Returns the length of the message in octets; 0 if more are needed; -EPROTONOSUPPORT for
 * another version; -EPROTO if a length is below the minimum of its type. After an error the
 * stream is broken: close the connection.
 */
int bfd_dplane_next(const uint8_t *buf, size_t len, struct bfd_dplane_msg *msg);

/* Fill `conf` with the configuration that bfdd requests for a session. */
void bfd_dplane_conf(const struct bfd_dplane_session *session, struct bfd_conf *conf);

/* Fill the state of a session for bfdd. bfdd reports Init to its clients as Down. */
void bfd_dplane_state_of(const struct bfd_fsm *f, uint32_t lid,
			 struct bfd_dplane_state *state);

/* Write a whole message. Each function returns the length of the message in octets. */
#define BFD_DPLANE_STATE_BYTES    (BFD_DPLANE_HEADER_BYTES + 28)
#define BFD_DPLANE_COUNTERS_BYTES (BFD_DPLANE_HEADER_BYTES + 72)
#define BFD_DPLANE_ECHO_BYTES     (BFD_DPLANE_HEADER_BYTES + 16)
size_t bfd_dplane_write_state(const struct bfd_dplane_state *state,
			      uint8_t out[BFD_DPLANE_STATE_BYTES]);
size_t bfd_dplane_write_counters(const struct bfd_dplane_counters *counters, uint16_t id,
				 uint8_t out[BFD_DPLANE_COUNTERS_BYTES]);
size_t bfd_dplane_write_echo_request(const struct bfd_dplane_echo *echo, uint16_t id,
				     uint8_t out[BFD_DPLANE_ECHO_BYTES]);
size_t bfd_dplane_write_echo_reply(const struct bfd_dplane_echo *echo, uint16_t id,
				   uint8_t out[BFD_DPLANE_ECHO_BYTES]);

#endif
