/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The messages between bfdd and a data plane, against octets written by hand.
 *
 * link: fpm-dataplane/bfd/dplane.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bfd/dplane.h"

#define ADD_BYTES 140u

/* Write a message of bfdd: a header, and a payload whose octet i is i + 1. */
static size_t
message(uint8_t *out, uint16_t type, uint16_t id, size_t bytes)
{
	const uint8_t header[] = {1,
				  0,
				  (uint8_t)(type >> 8),
				  (uint8_t)type,
				  (uint8_t)(id >> 8),
				  (uint8_t)id,
				  (uint8_t)(bytes >> 8),
				  (uint8_t)bytes};

	memcpy(out, header, sizeof(header));
	for (size_t i = 8; i < bytes; i++)
		out[i] = (uint8_t)(i - 7);
	return bytes;
}

/* Call bfd_dplane_next() with a copy of the octets, behind which no memory follows. */
static int
next(const uint8_t *octets, size_t len, struct bfd_dplane_msg *msg)
{
	uint8_t *copy = malloc(len == 0 ? 1 : len);
	int n;

	memcpy(copy, octets, len);
	n = bfd_dplane_next(copy, len, msg);
	free(copy);
	return n;
}

static void
a_session_has_each_field_at_its_place(void **state)
{
	static const uint16_t type[] = {BFD_DPLANE_ADD, BFD_DPLANE_DELETE};

	for (unsigned int t = 0; t < 2; t++) {
		struct bfd_dplane_msg m;
		uint8_t wire[ADD_BYTES];

		message(wire, type[t], 0x1234, sizeof(wire));
		wire[8 + 3] = BFD_DPLANE_IPV6 | BFD_DPLANE_SHUTDOWN;
		assert_int_equal(next(wire, sizeof(wire), &m), ADD_BYTES);
		assert_true(m.known);
		assert_int_equal(m.type, type[t]);
		assert_int_equal(m.id, 0x1234);
		assert_int_equal(m.len, ADD_BYTES);
		assert_int_equal(m.session.flags, 0x01020350);
		assert_int_equal(m.session.family, 6);
		assert_memory_equal(m.session.src.octet, wire + 8 + 4, 16);
		assert_memory_equal(m.session.dst.octet, wire + 8 + 20, 16);
		assert_int_equal(m.session.lid, 0x25262728);
		assert_int_equal(m.session.min_tx_us, 0x292a2b2c);
		assert_int_equal(m.session.min_rx_us, 0x2d2e2f30);
		assert_int_equal(m.session.min_echo_tx_us, 0x31323334);
		assert_int_equal(m.session.min_echo_rx_us, 0x35363738);
		assert_int_equal(m.session.hold_time, 0x393a3b3c);
		assert_int_equal(m.session.ttl, 0x3d);
		assert_int_equal(m.session.mult, 0x3e);
		assert_int_equal(m.session.ifindex, 0x41424344);
		/* The name fills its field, without a terminator. */
		assert_int_equal(strlen(m.session.ifname), 64);
		assert_memory_equal(m.session.ifname, wire + 8 + 68, 64);
	}
}

static void
an_ipv4_session_has_four_octets_of_each_address(void **state)
{
	static const uint8_t zero[16];
	struct bfd_dplane_msg m;
	uint8_t wire[ADD_BYTES];

	message(wire, BFD_DPLANE_ADD, 0, sizeof(wire));
	wire[8 + 3] = 0;
	assert_int_equal(next(wire, sizeof(wire), &m), ADD_BYTES);
	assert_int_equal(m.session.family, 4);
	assert_memory_equal(m.session.src.octet, wire + 8 + 4, 4);
	assert_memory_equal(m.session.dst.octet, wire + 8 + 20, 4);
	assert_memory_equal(m.session.src.octet + 4, zero, 12);
	assert_memory_equal(m.session.dst.octet + 4, zero, 12);
}

static void
a_name_ends_at_its_first_zero(void **state)
{
	struct bfd_dplane_msg m;
	uint8_t wire[ADD_BYTES];

	message(wire, BFD_DPLANE_ADD, 0, sizeof(wire));
	memcpy(wire + 8 + 68, "lan0", 5);
	assert_int_equal(next(wire, sizeof(wire), &m), ADD_BYTES);
	assert_string_equal(m.session.ifname, "lan0");
	/* Octets behind the name are not copied. */
	for (unsigned int i = 4; i < sizeof(m.session.ifname); i++)
		assert_int_equal(m.session.ifname[i], 0);
	wire[8 + 68] = 0;
	assert_int_equal(next(wire, sizeof(wire), &m), ADD_BYTES);
	assert_string_equal(m.session.ifname, "");
}

static void
a_question_for_counters_has_a_number_and_an_id(void **state)
{
	struct bfd_dplane_msg m;
	uint8_t wire[12];

	message(wire, BFD_DPLANE_REQUEST_COUNTERS, 0xfffe, sizeof(wire));
	assert_int_equal(next(wire, sizeof(wire), &m), 12);
	assert_true(m.known);
	assert_int_equal(m.lid, 0x01020304);
	assert_int_equal(m.id, 0xfffe);
}

static void
an_echo_has_both_times(void **state)
{
	for (uint16_t type = BFD_DPLANE_ECHO_REQUEST; type <= BFD_DPLANE_ECHO_REPLY;
	     type++) {
		struct bfd_dplane_msg m;
		uint8_t wire[24];

		message(wire, type, 7, sizeof(wire));
		assert_int_equal(next(wire, sizeof(wire), &m), 24);
		assert_true(m.known);
		assert_int_equal(m.type, type);
		assert_int_equal(m.echo.our_us, 0x0102030405060708);
		assert_int_equal(m.echo.bfdd_us, 0x090a0b0c0d0e0f10);
	}
}

static void
a_longer_message_is_read_and_all_of_it_consumed(void **state)
{
	struct bfd_dplane_msg m;
	uint8_t wire[400];

	/* The message of a later bfdd has further fields. */
	message(wire, BFD_DPLANE_ADD, 0, 348 + 8);
	assert_int_equal(next(wire, sizeof(wire), &m), 356);
	assert_true(m.known);
	assert_int_equal(m.session.lid, 0x25262728);
}

static void
an_unknown_type_is_skipped(void **state)
{
	/* bfdd does not send the last two of these. */
	static const uint16_t type[] = {7, 256, 0xffff, BFD_DPLANE_STATE_CHANGE,
					BFD_DPLANE_COUNTERS};

	for (unsigned int i = 0; i < 5; i++) {
		struct bfd_dplane_msg m;
		uint8_t wire[30];

		message(wire, type[i], 3, 10);
		assert_int_equal(next(wire, sizeof(wire), &m), 10);
		assert_false(m.known);
		assert_int_equal(m.type, type[i]);
		message(wire, type[i], 3, 8);
		assert_int_equal(next(wire, 8, &m), 8);
	}
}

static void
a_message_is_complete_only_with_its_last_octet(void **state)
{
	static const struct {
		uint16_t type, bytes;
	} of[] = {{BFD_DPLANE_ADD, ADD_BYTES},       {BFD_DPLANE_DELETE, ADD_BYTES},
		  {BFD_DPLANE_REQUEST_COUNTERS, 12}, {BFD_DPLANE_ECHO_REQUEST, 24},
		  {BFD_DPLANE_ECHO_REPLY, 24},       {99, 60}};

	for (unsigned int i = 0; i < 6; i++) {
		struct bfd_dplane_msg m, before;
		uint8_t wire[ADD_BYTES];

		message(wire, of[i].type, 0, of[i].bytes);
		memset(&m, 0xa5, sizeof(m));
		before = m;
		for (size_t len = 0; len < of[i].bytes; len++) {
			assert_int_equal(next(wire, len, &m), 0);
			assert_memory_equal(&m, &before, sizeof(m));
		}
		assert_int_equal(next(wire, of[i].bytes, &m), of[i].bytes);
	}
}

static void
a_broken_stream_is_refused(void **state)
{
	static const struct {
		uint16_t type, least;
	} of[] = {{BFD_DPLANE_ADD, ADD_BYTES},       {BFD_DPLANE_DELETE, ADD_BYTES},
		  {BFD_DPLANE_REQUEST_COUNTERS, 12}, {BFD_DPLANE_ECHO_REQUEST, 24},
		  {BFD_DPLANE_ECHO_REPLY, 24},       {99, 8}};
	struct bfd_dplane_msg m, before;
	uint8_t wire[200];

	memset(&m, 0xa5, sizeof(m));
	before = m;
	for (unsigned int i = 0; i < 6; i++) {
		for (uint16_t bytes = 0; bytes < of[i].least; bytes++) {
			message(wire, of[i].type, 0, sizeof(wire));
			wire[6] = 0;
			wire[7] = (uint8_t)bytes;
			assert_int_equal(next(wire, sizeof(wire), &m), -EPROTO);
			/* The header is enough to refuse the message. */
			assert_int_equal(next(wire, 8, &m), -EPROTO);
		}
	}
	for (unsigned int version = 0; version < 256; version++) {
		message(wire, BFD_DPLANE_ADD, 0, ADD_BYTES);
		wire[0] = (uint8_t)version;
		if (version != 1) {
			assert_int_equal(next(wire, sizeof(wire), &m), -EPROTONOSUPPORT);
			assert_int_equal(next(wire, 1, &m), -EPROTONOSUPPORT);
		}
	}
	assert_memory_equal(&m, &before, sizeof(m));
}

static void
messages_follow_each_other(void **state)
{
	static const uint16_t type[] = {BFD_DPLANE_ADD, 77, BFD_DPLANE_REQUEST_COUNTERS,
					BFD_DPLANE_ECHO_REPLY, BFD_DPLANE_DELETE};
	static const size_t bytes[] = {ADD_BYTES, 19, 12, 24, ADD_BYTES + 1};
	struct bfd_dplane_msg m;
	uint8_t wire[400];
	size_t len = 0, at = 0;

	for (unsigned int i = 0; i < 5; i++)
		len += message(wire + len, type[i], (uint16_t)i, bytes[i]);
	for (unsigned int i = 0; i < 5; i++) {
		assert_int_equal(next(wire + at, len - at, &m), bytes[i]);
		assert_int_equal(m.type, type[i]);
		assert_int_equal(m.id, i);
		at += bytes[i];
	}
	assert_int_equal(at, len);
}

static void
the_largest_message_fits(void **state)
{
	uint8_t *wire = malloc(BFD_DPLANE_MAX_BYTES);
	struct bfd_dplane_msg m;

	message(wire, BFD_DPLANE_ADD, 0, BFD_DPLANE_MAX_BYTES);
	assert_int_equal(bfd_dplane_next(wire, BFD_DPLANE_MAX_BYTES - 1, &m), 0);
	assert_int_equal(bfd_dplane_next(wire, BFD_DPLANE_MAX_BYTES, &m), 65535);
	free(wire);
}

static void
each_flag_sets_its_part_of_the_configuration(void **state)
{
	struct bfd_dplane_session s = {
		.min_tx_us = 1,
		.min_rx_us = 2,
		.min_echo_tx_us = 3,
		.min_echo_rx_us = 4,
		.mult = 5,
	};
	struct bfd_conf c;

	for (unsigned int bit = 1; bit <= 64; bit <<= 1) {
		s.flags = bit;
		bfd_dplane_conf(&s, &c);
		assert_int_equal(c.multihop, bit == 1);
		assert_int_equal(c.cbit, bit == 4);
		assert_int_equal(c.echo, bit == 8);
		assert_int_equal(c.passive, bit == 32);
		assert_int_equal(c.shutdown, bit == 64);
		assert_int_equal(c.min_tx_us, 1);
		assert_int_equal(c.min_rx_us, 2);
		assert_int_equal(c.echo_tx_us, 3);
		assert_int_equal(c.min_echo_rx_us, 4);
		assert_int_equal(c.mult, 5);
	}
}

/* No router forwards the echo packets of such a peer (RFC 3927, 7). */
static void
a_link_local_peer_of_ipv4_must_send_no_echo_packets(void **state)
{
	struct bfd_dplane_session s = {
		.family = 4, .dst = {{169, 254, 0, 2}}, .min_echo_rx_us = 4};
	struct bfd_conf c;

	bfd_dplane_conf(&s, &c);
	assert_int_equal(c.min_echo_rx_us, 0);
	s.dst.octet[1] = 253;
	bfd_dplane_conf(&s, &c);
	assert_int_equal(c.min_echo_rx_us, 4);
	s.dst.octet[1] = 254;
	s.family = 6;
	bfd_dplane_conf(&s, &c);
	assert_int_equal(c.min_echo_rx_us, 4);
}

static void
a_state_change_is_written_as_bfdd_reads_it(void **state)
{
	static const uint8_t want[BFD_DPLANE_STATE_BYTES] = {
		1, 0, 0,  4,  0,  0,  0,  36,                /* header */
		0, 1, 2,  3,  4,  5,  6,  7,  0,  0,  0,  3, /* lid, remote discriminator, flags */
		8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 3, 1, 5, 0,
	};
	const struct bfd_dplane_state s = {
		.lid = 0x00010203,
		.remote_discr = 0x04050607,
		.remote_flags = BFD_DPLANE_REMOTE_CBIT | BFD_DPLANE_REMOTE_DEMAND,
		.remote_min_tx_us = 0x08090a0b,
		.remote_min_rx_us = 0x0c0d0e0f,
		.remote_min_echo_rx_us = 0x10111213,
		.state = BFD_UP,
		.remote_diag = BFD_DIAG_EXPIRED,
		.remote_mult = 5,
	};
	uint8_t wire[BFD_DPLANE_STATE_BYTES];

	memset(wire, 0xa5, sizeof(wire));
	assert_int_equal(bfd_dplane_write_state(&s, wire), sizeof(want));
	assert_memory_equal(wire, want, sizeof(want));
}

static void
the_state_of_a_session_is_its_own_with_the_neighbors_timers(void **state)
{
	struct bfd_fsm f = {
		.my_discr = 1,
		.your_discr = 2,
		.remote_min_tx_us = 3,
		.remote_min_rx_us = 4,
		.remote_min_echo_rx_us = 5,
		.remote_state = BFD_INIT,
		.remote_diag = 6,
		.remote_mult = 7,
		.diag = 1,
	};
	struct bfd_dplane_state s;

	for (unsigned int own = BFD_ADMIN_DOWN; own <= BFD_UP; own++) {
		f.state = (uint8_t)own;
		f.remote_cbit = own & 1;
		f.remote_demand = own >> 1;
		bfd_dplane_state_of(&f, 99, &s);
		assert_int_equal(s.state, own);
		assert_int_equal(s.remote_flags, own);
		assert_int_equal(s.lid, 99);
		assert_int_equal(s.remote_discr, 2);
		assert_int_equal(s.remote_min_tx_us, 3);
		assert_int_equal(s.remote_min_rx_us, 4);
		assert_int_equal(s.remote_min_echo_rx_us, 5);
		assert_int_equal(s.remote_diag, 6);
		assert_int_equal(s.remote_mult, 7);
	}
}

static void
counters_are_written_as_bfdd_reads_them(void **state)
{
	const struct bfd_dplane_counters c = {
		.lid = 0x01020304,
		.control_in_octets = 0x1111111111111111,
		.control_in_packets = 0x2222222222222222,
		.control_out_octets = 0x3333333333333333,
		.control_out_packets = 0x4444444444444444,
		.echo_in_octets = 0x5555555555555555,
		.echo_in_packets = 0x6666666666666666,
		.echo_out_octets = 0x7777777777777777,
		.echo_out_packets = 0x8877665544332211,
	};
	uint8_t wire[BFD_DPLANE_COUNTERS_BYTES];
	uint8_t want[BFD_DPLANE_COUNTERS_BYTES] = {1, 0,  0, 6, 0xab, 0xcd,
						   0, 80, 1, 2, 3,    4};

	for (unsigned int i = 0; i < 7; i++)
		memset(want + 16 + 8 * i, (int)(0x11 * (i + 1)), 8);
	memcpy(want + 72, "\x88\x77\x66\x55\x44\x33\x22\x11", 8);
	memset(wire, 0xa5, sizeof(wire));
	assert_int_equal(bfd_dplane_write_counters(&c, 0xabcd, wire), sizeof(want));
	assert_memory_equal(wire, want, sizeof(want));
}

static void
an_echo_is_written_as_it_is_read(void **state)
{
	const struct bfd_dplane_echo e = {.our_us = 0x0102030405060708, .bfdd_us = 1};
	uint8_t wire[BFD_DPLANE_ECHO_BYTES];
	struct bfd_dplane_msg m;

	assert_int_equal(bfd_dplane_write_echo_reply(&e, 0x0102, wire), 24);
	assert_int_equal(next(wire, sizeof(wire), &m), 24);
	assert_int_equal(m.type, BFD_DPLANE_ECHO_REPLY);
	assert_int_equal(m.id, 0x0102);
	assert_int_equal(m.echo.our_us, e.our_us);
	assert_int_equal(m.echo.bfdd_us, e.bfdd_us);
	assert_int_equal(bfd_dplane_write_echo_request(&e, 3, wire), 24);
	assert_int_equal(next(wire, sizeof(wire), &m), 24);
	assert_int_equal(m.type, BFD_DPLANE_ECHO_REQUEST);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_session_has_each_field_at_its_place),
		cmocka_unit_test(an_ipv4_session_has_four_octets_of_each_address),
		cmocka_unit_test(a_name_ends_at_its_first_zero),
		cmocka_unit_test(a_question_for_counters_has_a_number_and_an_id),
		cmocka_unit_test(an_echo_has_both_times),
		cmocka_unit_test(a_longer_message_is_read_and_all_of_it_consumed),
		cmocka_unit_test(an_unknown_type_is_skipped),
		cmocka_unit_test(a_message_is_complete_only_with_its_last_octet),
		cmocka_unit_test(a_broken_stream_is_refused),
		cmocka_unit_test(messages_follow_each_other),
		cmocka_unit_test(the_largest_message_fits),
		cmocka_unit_test(each_flag_sets_its_part_of_the_configuration),
		cmocka_unit_test(a_link_local_peer_of_ipv4_must_send_no_echo_packets),
		cmocka_unit_test(a_state_change_is_written_as_bfdd_reads_it),
		cmocka_unit_test(
			the_state_of_a_session_is_its_own_with_the_neighbors_timers),
		cmocka_unit_test(counters_are_written_as_bfdd_reads_them),
		cmocka_unit_test(an_echo_is_written_as_it_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
