/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * packet: the BFD control packet of RFC 5880, section 4.1, without authentication. No side
 * effects, no thread of its own.
 */
#ifndef BFD_PACKET_H
#define BFD_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BFD_VERSION      1
#define BFD_PACKET_BYTES 24
#define BFD_MIN_ECHO_RX  20 /* offset of the required minimum echo interval */

/* The values are those of the wire, and those of bfdd. */
enum bfd_state { BFD_ADMIN_DOWN, BFD_DOWN, BFD_INIT, BFD_UP };

enum bfd_diag {
	BFD_DIAG_NONE,
	BFD_DIAG_EXPIRED,       /* no packet for a detection time */
	BFD_DIAG_ECHO,          /* the echo function failed */
	BFD_DIAG_NEIGHBOR_DOWN, /* the neighbor signaled Down */
	BFD_DIAG_FORWARDING,    /* the forwarding plane was reset */
	BFD_DIAG_PATH,          /* the path is down */
	BFD_DIAG_CONCATENATED,  /* a concatenated path is down */
	BFD_DIAG_ADMIN,         /* administratively down */
	BFD_DIAG_REVERSE,       /* a reverse concatenated path is down */
	BFD_N_DIAG,
};

struct bfd_packet {
	uint32_t my_discr, your_discr;
	uint32_t min_tx_us, min_rx_us, min_echo_rx_us;
	uint8_t version;
	uint8_t diag;  /* 5 bits: may be BFD_N_DIAG or more */
	uint8_t state; /* enum bfd_state */
	uint8_t mult;
	uint8_t length; /* of the packet; below the payload's length if that has padding */
	bool poll, final, cbit, auth, demand, multipoint; /* P F C A D M */
};

/* Why a packet is discarded before its session is looked up. */
enum bfd_packet_error {
	BFD_PACKET_OK,
	BFD_PACKET_SHORT,      /* the payload has less than 24 octets */
	BFD_PACKET_VERSION,    /* not version 1 */
	BFD_PACKET_LENGTH,     /* length below the minimum, or above the payload's */
	BFD_PACKET_MULT,       /* detection multiplier 0 */
	BFD_PACKET_MULTIPOINT, /* M bit set */
	BFD_PACKET_MY_DISCR,   /* my discriminator 0 */
	BFD_PACKET_YOUR_DISCR, /* your discriminator 0, but neither Down nor AdminDown */
	BFD_PACKET_AUTH,       /* authenticated: not supported */
	BFD_N_PACKET_ERROR,
};

/*
 * Make all checks of RFC 5880, section 6.8.6, that need no session.
 *
 * p     out: the packet; written only if BFD_PACKET_OK is returned
 * wire  `len` octets: the payload of UDP. Octets after the length of the packet are
 *       ignored.
 */
enum bfd_packet_error bfd_packet_read(struct bfd_packet *p, const uint8_t *wire,
				      size_t len);

/*
 * Write a packet. The caller is responsible for the values; `version` and `length` are
 * written unchanged.
 */
void bfd_packet_write(const struct bfd_packet *p, uint8_t wire[BFD_PACKET_BYTES]);

/* Return a name like "up", "expired" or "my-discriminator". Any value is allowed. */
const char *bfd_state_name(unsigned int state);
const char *bfd_diag_name(unsigned int diag);
const char *bfd_packet_error_name(enum bfd_packet_error error);

#endif
