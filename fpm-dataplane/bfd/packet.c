/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * packet: BFD control packets, in the order of octets of RFC 5880, section 4.1, and the
 * checks of section 6.8.6 in the order of that section. Pure functions.
 */
#include "bfd/packet.h"

#include "base/inet.h"

/* Octet 1: state and flags. */
#define POLL       0x20
#define FINAL      0x10
#define CBIT       0x08
#define AUTH       0x04
#define DEMAND     0x02
#define MULTIPOINT 0x01

/* With authentication, its type and its length follow. */
#define AUTH_BYTES_MIN 26

enum bfd_packet_error
bfd_packet_read(struct bfd_packet *p, const uint8_t *wire, size_t len)
{
	uint32_t my_discr, your_discr;
	uint8_t state, length;
	bool auth;

	if (len < BFD_PACKET_BYTES)
		return BFD_PACKET_SHORT;
	state = wire[1] >> 6;
	auth = (wire[1] & AUTH) != 0;
	length = wire[3];
	my_discr = get_be32(wire + 4);
	your_discr = get_be32(wire + 8);
	if (wire[0] >> 5 != BFD_VERSION)
		return BFD_PACKET_VERSION;
	if (length < (auth ? AUTH_BYTES_MIN : BFD_PACKET_BYTES) || length > len)
		return BFD_PACKET_LENGTH;
	if (wire[2] == 0)
		return BFD_PACKET_MULT;
	if (wire[1] & MULTIPOINT)
		return BFD_PACKET_MULTIPOINT;
	if (my_discr == 0)
		return BFD_PACKET_MY_DISCR;
	if (your_discr == 0 && state != BFD_DOWN && state != BFD_ADMIN_DOWN)
		return BFD_PACKET_YOUR_DISCR;
	if (auth)
		return BFD_PACKET_AUTH;
	*p = (struct bfd_packet){
		.my_discr = my_discr,
		.your_discr = your_discr,
		.min_tx_us = get_be32(wire + 12),
		.min_rx_us = get_be32(wire + 16),
		.min_echo_rx_us = get_be32(wire + 20),
		.version = BFD_VERSION,
		.diag = wire[0] & 0x1f,
		.state = state,
		.mult = wire[2],
		.length = length,
		.poll = (wire[1] & POLL) != 0,
		.final = (wire[1] & FINAL) != 0,
		.cbit = (wire[1] & CBIT) != 0,
		.demand = (wire[1] & DEMAND) != 0,
	};
	return BFD_PACKET_OK;
}

void
bfd_packet_write(const struct bfd_packet *p, uint8_t wire[BFD_PACKET_BYTES])
{
	wire[0] = (uint8_t)(p->version << 5 | (p->diag & 0x1f));
	wire[1] = (uint8_t)(p->state << 6 | (p->poll ? POLL : 0) | (p->final ? FINAL : 0) |
			    (p->cbit ? CBIT : 0) | (p->auth ? AUTH : 0) |
			    (p->demand ? DEMAND : 0) | (p->multipoint ? MULTIPOINT : 0));
	wire[2] = p->mult;
	wire[3] = p->length;
	put_be32(wire + 4, p->my_discr);
	put_be32(wire + 8, p->your_discr);
	put_be32(wire + 12, p->min_tx_us);
	put_be32(wire + 16, p->min_rx_us);
	put_be32(wire + 20, p->min_echo_rx_us);
}

/* --- names ---------------------------------------------------------------------------- */

const char *
bfd_state_name(unsigned int state)
{
	static const char *const name[] = {"admin-down", "down", "init", "up"};

	return state <= BFD_UP ? name[state] : "unknown";
}

const char *
bfd_diag_name(unsigned int diag)
{
	static const char *const name[BFD_N_DIAG] = {
		"none",
		"expired",
		"echo-failed",
		"neighbor-down",
		"forwarding-reset",
		"path-down",
		"concatenated-path-down",
		"admin-down",
		"reverse-concatenated-path-down",
	};

	return diag < BFD_N_DIAG ? name[diag] : "unknown";
}

const char *
bfd_packet_error_name(enum bfd_packet_error error)
{
	static const char *const name[BFD_N_PACKET_ERROR] = {
		"ok",
		"short",
		"version",
		"length",
		"multiplier",
		"multipoint",
		"my-discriminator",
		"your-discriminator",
		"authenticated",
	};

	return (unsigned int)error < BFD_N_PACKET_ERROR ? name[error] : "unknown";
}
