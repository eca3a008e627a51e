/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * BFD packets of a neighbor, and messages of bfdd: no crash, no over-read, and a session
 * whose fields agree with each other.
 *
 * A libFuzzer target. If the first octet is 0, the other octets are a stream of bfdd's
 * messages. Otherwise they are read as a packet, and then as a script for a session: an
 * octet chooses a step, the octets after it are the values of the step.
 */
#include <errno.h>
#include <string.h>

#include "bfd/dplane.h"
#include "bfd/fsm.h"
#include "must.h"

#define OURS 0x11111111u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* --- messages of bfdd ----------------------------------------------------------------- */

static void
read_stream(const uint8_t *data, size_t size)
{
	struct bfd_dplane_msg m;
	int n;

	while ((n = bfd_dplane_next(data, size, &m)) > 0) {
		MUST(n >= BFD_DPLANE_HEADER_BYTES && (size_t)n <= size && m.len == n);
		/* A message that lacks its last octet is incomplete. */
		MUST(bfd_dplane_next(data, (size_t)n - 1, &m) == 0);
		MUST(bfd_dplane_next(data, (size_t)n, &m) == n);
		if (m.known && (m.type == BFD_DPLANE_ADD || m.type == BFD_DPLANE_DELETE)) {
			uint8_t out[BFD_DPLANE_STATE_BYTES], packet[BFD_PACKET_BYTES];
			struct bfd_dplane_state state;
			struct bfd_packet p;
			struct bfd_conf conf;
			struct bfd_fsm f;

			MUST(m.session.family == 4 || m.session.family == 6);
			MUST(strlen(m.session.ifname) <= BFD_DPLANE_IFNAME_BYTES);
			bfd_dplane_conf(&m.session, &conf);
			bfd_fsm_begin(&f, OURS, &conf, 1);
			bfd_fsm_packet(&f, false, packet);
			MUST(bfd_packet_read(&p, packet, sizeof(packet)) == BFD_PACKET_OK);
			bfd_dplane_state_of(&f, m.session.lid, &state);
			MUST(bfd_dplane_write_state(&state, out) == sizeof(out));
		} else if (m.known && m.type != BFD_DPLANE_REQUEST_COUNTERS) {
			uint8_t out[BFD_DPLANE_ECHO_BYTES];

			MUST(m.type == BFD_DPLANE_ECHO_REQUEST ||
			     m.type == BFD_DPLANE_ECHO_REPLY);
			MUST(bfd_dplane_write_echo_request(&m.echo, m.id, out) ==
			     sizeof(out));
			/*
			 * The decoder drops the reserved octet and the octets after the
			 * times.
			 */
			out[3] = (uint8_t)m.type;
			MUST(memcmp(out + 2, data + 2, 4) == 0);
			MUST(memcmp(out + 8, data + 8, 16) == 0);
		}
		data += n;
		size -= (size_t)n;
	}
	MUST(n == 0 || n == -EPROTO || n == -EPROTONOSUPPORT);
}

/* --- a session ------------------------------------------------------------------------ */

struct script {
	const uint8_t *data;
	size_t size;
};

static uint8_t
take(struct script *s)
{
	if (s->size == 0)
		return 0;
	s->size--;
	return *s->data++;
}

static struct bfd_conf
take_conf(struct script *s)
{
	static const uint32_t us[] = {0,      1,       10000,   50000,
				      300000, 1000000, 2000000, UINT32_MAX};
	uint8_t flags = take(s), a = take(s), b = take(s);

	return (struct bfd_conf){
		.min_tx_us = us[a & 7],
		.min_rx_us = us[a >> 3 & 7],
		.min_echo_rx_us = us[b & 7],
		.echo_tx_us = us[b >> 3 & 7],
		.mult = take(s),
		.passive = flags & 1,
		.shutdown = flags >> 1 & 1,
		.echo = flags >> 2 & 1,
		.cbit = flags >> 3 & 1,
		.multihop = flags >> 4 & 1,
	};
}

/* Check that the actions report each difference between two states of a session. */
static void
check(const struct bfd_fsm *f, const struct bfd_fsm *before, unsigned int acts,
      uint64_t now)
{
	uint8_t wire[BFD_PACKET_BYTES], expect[BFD_PACKET_BYTES];
	struct bfd_packet p;

	MUST(f->state <= BFD_UP && f->remote_state <= BFD_UP && f->my_discr == OURS);
	MUST(((acts & BFD_ACT_STATE) != 0) == (f->state != before->state));
	MUST(((acts & BFD_ACT_TX) != 0) == (bfd_fsm_tx_us(f) != bfd_fsm_tx_us(before)));
	MUST(((acts & BFD_ACT_DETECT) != 0) ==
	     (bfd_fsm_detect_us(f) != bfd_fsm_detect_us(before)));
	MUST(((acts & BFD_ACT_ECHO) != 0) ==
	     (bfd_fsm_echo_us(f) != bfd_fsm_echo_us(before)));
	MUST(!(acts & BFD_ACT_SEND) || now < f->silent_at);
	MUST(!bfd_fsm_is_failed(f) || (f->was_up && f->n_downs > 0 && f->state != BFD_UP &&
				       f->state != BFD_ADMIN_DOWN));
	MUST(!f->polling || f->state == BFD_UP);
	MUST((f->silent_at == BFD_NEVER) == (f->state != BFD_ADMIN_DOWN));
	MUST(f->conf.shutdown == (f->state == BFD_ADMIN_DOWN));
	MUST(f->state == BFD_UP ||
	     (f->used_tx_us >= BFD_SLOW_US && bfd_fsm_echo_us(f) == 0));
	MUST(bfd_fsm_expire_at(f) != BFD_NEVER || bfd_fsm_detect_us(f) == 0);
	for (unsigned int final = 0; final < 2; final++) {
		bfd_fsm_packet(f, final, wire);
		/* The reader refuses Init and Up without a neighbor's discriminator. */
		MUST(bfd_packet_read(&p, wire, sizeof(wire)) == BFD_PACKET_OK);
		MUST(p.final == final && !(p.final && p.poll) && p.state == f->state);
	}
	if (bfd_fsm_is_steady(f, expect)) {
		struct bfd_fsm g = *f, want = *f;

		MUST(bfd_packet_read(&p, expect, sizeof(expect)) == BFD_PACKET_OK);
		MUST(bfd_fsm_receive(&g, &p, now) == 0);
		bfd_fsm_heard(&want, now);
		MUST(memcmp(&g, &want, sizeof(g)) == 0);
	}
}

static void
run_session(struct script *s)
{
	struct bfd_conf conf = take_conf(s);
	uint64_t now = 1000000000;
	struct bfd_fsm f;

	memset(&f, 0, sizeof(f));
	bfd_fsm_begin(&f, OURS, &conf, now);
	while (s->size > 0) {
		struct bfd_fsm before = f;
		unsigned int acts = 0;
		struct bfd_packet p;
		uint8_t step = take(s);
		size_t n;

		switch (step & 7) {
		case 0: /* the octets as a packet, unchanged */
		case 1: /* a packet for this session */
		case 2: {
			uint8_t wire[64];

			n = step >> 3 < 24 ? 24 : step >> 3;
			for (size_t i = 0; i < n; i++)
				wire[i] = take(s);
			if ((step & 7) != 0) {
				wire[0] = (uint8_t)(0x20 | (wire[0] & 0x1f));
				wire[1] &= (uint8_t)~0x05;
				wire[3] = 24;
				memset(wire + 8, 0x11, 4);
			}
			if (bfd_packet_read(&p, wire, n) == BFD_PACKET_OK) {
				acts = bfd_fsm_receive(&f, &p, now);
				MUST(!(acts & BFD_ACT_FOREIGN) ||
				     memcmp(&f, &before, sizeof(f)) == 0);
			}
			break;
		}
		case 3:
			now += (uint64_t)take(s) * 10000000 * (step >> 3);
			break;
		case 4:
			if (bfd_fsm_expire_at(&f) != BFD_NEVER && (step & 8))
				now = now > bfd_fsm_expire_at(&f) ? now
								  : bfd_fsm_expire_at(&f);
			acts = bfd_fsm_expired(&f, now);
			break;
		case 5:
			conf = take_conf(s);
			acts = bfd_fsm_configure(&f, &conf, now);
			break;
		case 6:
			acts = bfd_fsm_shutdown(&f, step & 8, now);
			break;
		default:
			if (step & 8)
				acts = bfd_fsm_echo_lost(&f, now);
			else if (step & 16)
				bfd_fsm_resume(&f, now);
			else
				bfd_fsm_heard(&f, now);
			break;
		}
		check(&f, &before, acts, now);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct script s = {.data = data, .size = size};
	uint8_t which = take(&s), *copy;

	/*
	 * Copy the input to a block of its exact length, so that the sanitizer finds an
	 * over-read.
	 */
	copy = malloc(s.size == 0 ? 1 : s.size);
	MUST(copy != NULL);
	if (s.size != 0)
		memcpy(copy, s.data, s.size);
	if (which == 0) {
		read_stream(copy, s.size);
	} else {
		struct bfd_packet p;

		(void)bfd_packet_read(&p, copy, s.size);
		run_session(&s);
	}
	free(copy);
	return 0;
}
