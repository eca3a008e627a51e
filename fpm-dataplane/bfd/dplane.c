/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dplane: messages from bfdd to a data plane and back. The length of a message gives the
 * start of the next message, so a type or a field that a later bfdd adds is skipped. Pure
 * functions.
 */
#include "bfd/dplane.h"

#include <errno.h>
#include <string.h>

#include "base/inet.h"

/* Octets of payloads. */
#define SESSION_BYTES 132
#define ECHO_BYTES    16
#define LID_BYTES     4

static uint64_t
get_be64(const uint8_t *p)
{
	return (uint64_t)get_be32(p) << 32 | get_be32(p + 4);
}

static void
put_be64(uint8_t *p, uint64_t v)
{
	put_be32(p, (uint32_t)(v >> 32));
	put_be32(p + 4, (uint32_t)v);
}

/* --- from bfdd ------------------------------------------------------------------------ */

static void
read_session(const uint8_t *p, struct bfd_dplane_session *s)
{
	unsigned int octets;

	memset(s, 0, sizeof(*s));
	s->flags = get_be32(p);
	s->family = s->flags & BFD_DPLANE_IPV6 ? 6 : 4;
	octets = family_octets(s->family);
	memcpy(s->src.octet, p + 4, octets);
	memcpy(s->dst.octet, p + 20, octets);
	s->lid = get_be32(p + 36);
	s->min_tx_us = get_be32(p + 40);
	s->min_rx_us = get_be32(p + 44);
	s->min_echo_tx_us = get_be32(p + 48);
	s->min_echo_rx_us = get_be32(p + 52);
	s->hold_time = get_be32(p + 56);
	s->ttl = p[60];
	s->mult = p[61];
	s->ifindex = get_be32(p + 64);
	/* The name may fill its field without a terminator. */
	memcpy(s->ifname, p + 68, strnlen((const char *)p + 68, BFD_DPLANE_IFNAME_BYTES));
}

int
bfd_dplane_next(const uint8_t *buf, size_t len, struct bfd_dplane_msg *msg)
{
	const uint8_t *payload = buf + BFD_DPLANE_HEADER_BYTES;
	unsigned int length, least;
	uint16_t type;

	if (len >= 1 && buf[0] != BFD_DPLANE_VERSION)
		return -EPROTONOSUPPORT;
	if (len < BFD_DPLANE_HEADER_BYTES)
		return 0;
	type = get_be16(buf + 2);
	length = get_be16(buf + 6);
	switch (type) {
	case BFD_DPLANE_ECHO_REQUEST:
	case BFD_DPLANE_ECHO_REPLY:
		least = ECHO_BYTES;
		break;
	case BFD_DPLANE_ADD:
	case BFD_DPLANE_DELETE:
		least = SESSION_BYTES;
		break;
	case BFD_DPLANE_REQUEST_COUNTERS:
		least = LID_BYTES;
		break;
	default:
		least = 0;
		break;
	}
	if (length < BFD_DPLANE_HEADER_BYTES + least)
		return -EPROTO;
	if (len < length)
		return 0;

	memset(msg, 0, sizeof(*msg));
	msg->type = type;
	msg->id = get_be16(buf + 4);
	msg->len = (uint16_t)length;
	msg->known = least != 0;
	if (type == BFD_DPLANE_ADD || type == BFD_DPLANE_DELETE) {
		read_session(payload, &msg->session);
	} else if (type == BFD_DPLANE_REQUEST_COUNTERS) {
		msg->lid = get_be32(payload);
	} else if (msg->known) {
		msg->echo.our_us = get_be64(payload);
		msg->echo.bfdd_us = get_be64(payload + 8);
	}
	return (int)length;
}

void
bfd_dplane_conf(const struct bfd_dplane_session *s, struct bfd_conf *conf)
{
	/*
	 * Echo packets of IPv4 have the address of the peer as source and destination. No
	 * router forwards those of a link-local address (RFC 3927, 7): announce this.
	 */
	bool loops = s->family != 4 || !ipaddr_is_linklocal4(&s->dst);

	*conf = (struct bfd_conf){
		.min_tx_us = s->min_tx_us,
		.min_rx_us = s->min_rx_us,
		.min_echo_rx_us = loops ? s->min_echo_rx_us : 0,
		.echo_tx_us = s->min_echo_tx_us,
		.mult = s->mult,
		.passive = (s->flags & BFD_DPLANE_PASSIVE) != 0,
		.shutdown = (s->flags & BFD_DPLANE_SHUTDOWN) != 0,
		.echo = (s->flags & BFD_DPLANE_ECHO) != 0,
		.cbit = (s->flags & BFD_DPLANE_CBIT) != 0,
		.multihop = (s->flags & BFD_DPLANE_MULTIHOP) != 0,
	};
}

/* --- to bfdd -------------------------------------------------------------------------- */

void
bfd_dplane_state_of(const struct bfd_fsm *f, uint32_t lid, struct bfd_dplane_state *state)
{
	*state = (struct bfd_dplane_state){
		.lid = lid,
		.remote_discr = f->your_discr,
		.remote_flags = (f->remote_cbit ? BFD_DPLANE_REMOTE_CBIT : 0) |
				(f->remote_demand ? BFD_DPLANE_REMOTE_DEMAND : 0),
		.remote_min_tx_us = f->remote_min_tx_us,
		.remote_min_rx_us = f->remote_min_rx_us,
		.remote_min_echo_rx_us = f->remote_min_echo_rx_us,
		.state = f->state,
		.remote_diag = f->remote_diag,
		.remote_mult = f->remote_mult,
	};
}

/* Write the header of a message of `bytes` octets, and zeros after it. */
static uint8_t *
write_header(uint8_t *out, enum bfd_dplane_type type, uint16_t id, size_t bytes)
{
	memset(out, 0, bytes);
	out[0] = BFD_DPLANE_VERSION;
	put_be16(out + 2, (uint16_t)type);
	put_be16(out + 4, id);
	put_be16(out + 6, (uint16_t)bytes);
	return out + BFD_DPLANE_HEADER_BYTES;
}

size_t
bfd_dplane_write_state(const struct bfd_dplane_state *state,
		       uint8_t out[BFD_DPLANE_STATE_BYTES])
{
	uint8_t *p = write_header(out, BFD_DPLANE_STATE_CHANGE, 0, BFD_DPLANE_STATE_BYTES);

	put_be32(p, state->lid);
	put_be32(p + 4, state->remote_discr);
	put_be32(p + 8, state->remote_flags);
	put_be32(p + 12, state->remote_min_tx_us);
	put_be32(p + 16, state->remote_min_rx_us);
	put_be32(p + 20, state->remote_min_echo_rx_us);
	p[24] = state->state;
	p[25] = state->remote_diag;
	p[26] = state->remote_mult;
	return BFD_DPLANE_STATE_BYTES;
}

size_t
bfd_dplane_write_counters(const struct bfd_dplane_counters *counters, uint16_t id,
			  uint8_t out[BFD_DPLANE_COUNTERS_BYTES])
{
	uint8_t *p = write_header(out, BFD_DPLANE_COUNTERS, id, BFD_DPLANE_COUNTERS_BYTES);

	/* Four octets of padding follow the number. */
	put_be32(p, counters->lid);
	put_be64(p + 8, counters->control_in_octets);
	put_be64(p + 16, counters->control_in_packets);
	put_be64(p + 24, counters->control_out_octets);
	put_be64(p + 32, counters->control_out_packets);
	put_be64(p + 40, counters->echo_in_octets);
	put_be64(p + 48, counters->echo_in_packets);
	put_be64(p + 56, counters->echo_out_octets);
	put_be64(p + 64, counters->echo_out_packets);
	return BFD_DPLANE_COUNTERS_BYTES;
}

static size_t
write_echo(const struct bfd_dplane_echo *echo, enum bfd_dplane_type type, uint16_t id,
	   uint8_t out[BFD_DPLANE_ECHO_BYTES])
{
	uint8_t *p = write_header(out, type, id, BFD_DPLANE_ECHO_BYTES);

	put_be64(p, echo->our_us);
	put_be64(p + 8, echo->bfdd_us);
	return BFD_DPLANE_ECHO_BYTES;
}

size_t
bfd_dplane_write_echo_request(const struct bfd_dplane_echo *echo, uint16_t id,
			      uint8_t out[BFD_DPLANE_ECHO_BYTES])
{
	return write_echo(echo, BFD_DPLANE_ECHO_REQUEST, id, out);
}

size_t
bfd_dplane_write_echo_reply(const struct bfd_dplane_echo *echo, uint16_t id,
			    uint8_t out[BFD_DPLANE_ECHO_BYTES])
{
	return write_echo(echo, BFD_DPLANE_ECHO_REPLY, id, out);
}
