/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * BFD control packets: fields, checks, names.
 *
 * link: fpm-dataplane/bfd/packet.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "bfd/packet.h"

/*
 * Up, poll, multiplier 3, my discriminator 1, your discriminator 2; intervals: transmit 50
 * ms, receive 60 ms, echo receive 70 ms. Written by hand.
 */
static const uint8_t good[BFD_PACKET_BYTES] = {
	0x23, 0xe0, 3,    24,   0, 0, 0,    1,    0, 0, 0,    2,
	0,    0,    0xc3, 0x50, 0, 0, 0xea, 0x60, 0, 1, 0x11, 0x70,
};

/* Return the answer for `good` with octet `at` changed. No memory follows the packet. */
static enum bfd_packet_error
answer(unsigned int at, uint8_t octet, size_t len)
{
	uint8_t *wire = calloc(1, len == 0 ? 1 : len);
	struct bfd_packet p, before;
	enum bfd_packet_error error;

	memcpy(wire, good, len < sizeof(good) ? len : sizeof(good));
	if (at < len)
		wire[at] = octet;
	memset(&p, 0xa5, sizeof(p));
	before = p;
	error = bfd_packet_read(&p, wire, len);
	if (error != BFD_PACKET_OK)
		assert_memory_equal(&p, &before, sizeof(p));
	free(wire);
	return error;
}

static void
each_field_is_at_its_place(void **state)
{
	struct bfd_packet p;

	assert_int_equal(bfd_packet_read(&p, good, sizeof(good)), BFD_PACKET_OK);
	assert_int_equal(p.version, 1);
	assert_int_equal(p.diag, BFD_DIAG_NEIGHBOR_DOWN);
	assert_int_equal(p.state, BFD_UP);
	assert_true(p.poll);
	assert_false(p.final || p.cbit || p.auth || p.demand || p.multipoint);
	assert_int_equal(p.mult, 3);
	assert_int_equal(p.length, 24);
	assert_int_equal(p.my_discr, 1);
	assert_int_equal(p.your_discr, 2);
	assert_int_equal(p.min_tx_us, 50000);
	assert_int_equal(p.min_rx_us, 60000);
	assert_int_equal(p.min_echo_rx_us, 70000);
}

static void
each_flag_has_its_bit(void **state)
{
	static const uint8_t bit[] = {0x20, 0x10, 0x08, 0x02};

	for (unsigned int i = 0; i < 4; i++) {
		uint8_t wire[BFD_PACKET_BYTES];
		struct bfd_packet p;

		memcpy(wire, good, sizeof(wire));
		wire[1] = (uint8_t)(BFD_INIT << 6 | bit[i]);
		assert_int_equal(bfd_packet_read(&p, wire, sizeof(wire)), BFD_PACKET_OK);
		assert_int_equal(p.state, BFD_INIT);
		assert_int_equal(p.poll, i == 0);
		assert_int_equal(p.final, i == 1);
		assert_int_equal(p.cbit, i == 2);
		assert_int_equal(p.demand, i == 3);
	}
	/* Bits that no accepted packet has are written all the same. */
	{
		struct bfd_packet p = {.auth = true};
		uint8_t wire[BFD_PACKET_BYTES];

		bfd_packet_write(&p, wire);
		assert_int_equal(wire[1], 0x04);
		p = (struct bfd_packet){.multipoint = true};
		bfd_packet_write(&p, wire);
		assert_int_equal(wire[1], 0x01);
	}
}

static void
what_is_written_is_what_was_read(void **state)
{
	srandom(1);
	for (unsigned int n = 0, ok = 0; ok < 10000; n++) {
		uint8_t wire[BFD_PACKET_BYTES], again[BFD_PACKET_BYTES];
		struct bfd_packet p;

		assert_true(n < 1000000);
		for (unsigned int i = 0; i < sizeof(wire); i++)
			wire[i] = (uint8_t)random();
		wire[0] = (uint8_t)(0x20 | (wire[0] & 0x1f));
		wire[3] = 24;
		if (bfd_packet_read(&p, wire, sizeof(wire)) != BFD_PACKET_OK)
			continue;
		bfd_packet_write(&p, again);
		assert_memory_equal(again, wire, sizeof(wire));
		ok++;
	}
}

static void
each_bad_packet_has_its_reason(void **state)
{
	assert_int_equal(answer(24, 0, 24), BFD_PACKET_OK);
	for (size_t len = 0; len < 24; len++)
		assert_int_equal(answer(len, 0, len), BFD_PACKET_SHORT);
	for (unsigned int version = 0; version < 8; version++)
		assert_int_equal(answer(0, (uint8_t)(version << 5), 24),
				 version == 1 ? BFD_PACKET_OK : BFD_PACKET_VERSION);
	assert_int_equal(answer(3, 23, 24), BFD_PACKET_LENGTH);
	assert_int_equal(answer(3, 0, 24), BFD_PACKET_LENGTH);
	assert_int_equal(answer(3, 25, 24), BFD_PACKET_LENGTH);
	assert_int_equal(answer(3, 25, 25), BFD_PACKET_OK);
	assert_int_equal(answer(2, 0, 24), BFD_PACKET_MULT);
	assert_int_equal(answer(2, 255, 24), BFD_PACKET_OK);
	assert_int_equal(answer(1, 0xc1, 24), BFD_PACKET_MULTIPOINT);
	assert_int_equal(answer(7, 0, 24), BFD_PACKET_MY_DISCR);
	assert_int_equal(answer(11, 0, 24), BFD_PACKET_YOUR_DISCR);
}

static void
octets_behind_the_packet_are_ignored(void **state)
{
	assert_int_equal(answer(40, 0xff, 60), BFD_PACKET_OK);
}

static void
any_octet_of_a_discriminator_counts(void **state)
{
	for (unsigned int octet = 4; octet < 12; octet++) {
		uint8_t wire[BFD_PACKET_BYTES];
		struct bfd_packet p;

		memcpy(wire, good, sizeof(wire));
		wire[7] = octet < 8 ? 0 : 1;
		wire[11] = octet < 8 ? 1 : 0;
		wire[octet] = 0x80;
		assert_int_equal(bfd_packet_read(&p, wire, sizeof(wire)), BFD_PACKET_OK);
	}
}

static void
your_discriminator_may_be_0_in_down_and_admin_down_only(void **state)
{
	for (unsigned int s = BFD_ADMIN_DOWN; s <= BFD_UP; s++) {
		uint8_t wire[BFD_PACKET_BYTES];
		struct bfd_packet p;

		memcpy(wire, good, sizeof(wire));
		wire[1] = (uint8_t)(s << 6);
		wire[11] = 0;
		assert_int_equal(bfd_packet_read(&p, wire, sizeof(wire)),
				 s <= BFD_DOWN ? BFD_PACKET_OK : BFD_PACKET_YOUR_DISCR);
	}
}

static void
authentication_needs_26_octets_and_is_refused(void **state)
{
	uint8_t wire[28] = {0};
	struct bfd_packet p;

	memcpy(wire, good, sizeof(good));
	wire[1] |= 0x04;
	for (uint8_t length = 24; length <= 28; length++) {
		wire[3] = length;
		assert_int_equal(bfd_packet_read(&p, wire, sizeof(wire)),
				 length < 26 ? BFD_PACKET_LENGTH : BFD_PACKET_AUTH);
	}
}

static void
names_differ(void **state)
{
	assert_string_equal(bfd_state_name(BFD_UP), "up");
	assert_string_equal(bfd_state_name(BFD_ADMIN_DOWN), "admin-down");
	assert_string_equal(bfd_state_name(4), "unknown");
	assert_string_equal(bfd_diag_name(BFD_DIAG_EXPIRED), "expired");
	assert_string_equal(bfd_diag_name(BFD_DIAG_ADMIN), "admin-down");
	assert_string_equal(bfd_diag_name(31), "unknown");
	assert_string_equal(bfd_packet_error_name(BFD_PACKET_AUTH), "authenticated");
	assert_string_equal(bfd_packet_error_name(BFD_N_PACKET_ERROR), "unknown");
	for (unsigned int i = 0; i < BFD_N_DIAG; i++)
		for (unsigned int j = 0; j < i; j++)
			assert_string_not_equal(bfd_diag_name(i), bfd_diag_name(j));
	for (unsigned int i = 0; i < BFD_N_PACKET_ERROR; i++)
		for (unsigned int j = 0; j < i; j++)
			assert_string_not_equal(bfd_packet_error_name(i),
						bfd_packet_error_name(j));
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_field_is_at_its_place),
		cmocka_unit_test(each_flag_has_its_bit),
		cmocka_unit_test(what_is_written_is_what_was_read),
		cmocka_unit_test(each_bad_packet_has_its_reason),
		cmocka_unit_test(octets_behind_the_packet_are_ignored),
		cmocka_unit_test(any_octet_of_a_discriminator_counts),
		cmocka_unit_test(your_discriminator_may_be_0_in_down_and_admin_down_only),
		cmocka_unit_test(authentication_needs_26_octets_and_is_refused),
		cmocka_unit_test(names_differ),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
