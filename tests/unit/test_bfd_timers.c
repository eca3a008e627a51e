/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The intervals of one BFD session, its poll sequences and its jitter.
 *
 * link: fpm-dataplane/bfd/fsm.c fpm-dataplane/bfd/packet.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "bfd_session.h"

/* --- timers --------------------------------------------------------------------------- */

static void
up_speeds_up_by_a_poll_sequence(void **state)
{
	struct bfd_fsm f = begun(&usual);
	unsigned int acts;

	receive(&f, BFD_DOWN, T0);
	assert_int_equal(bfd_fsm_tx_us(&f), BFD_SLOW_US);
	assert_int_equal(sent(&f, false).min_tx_us, BFD_SLOW_US);
	assert_false(sent(&f, false).poll);
	acts = receive(&f, BFD_INIT, T0 + 1);
	assert_int_equal(acts & (BFD_ACT_STATE | BFD_ACT_SEND | BFD_ACT_TX),
			 BFD_ACT_STATE | BFD_ACT_SEND | BFD_ACT_TX);
	assert_int_equal(sent(&f, false).min_tx_us, 50 * MS_US);
	assert_true(sent(&f, false).poll);
	/* A shorter interval is used at once. */
	assert_int_equal(bfd_fsm_tx_us(&f), 50 * MS_US);
	/* Packets without Final do not end the sequence. */
	receive(&f, BFD_UP, T0 + 2);
	assert_true(sent(&f, false).poll);
	acts = receive_final(&f, T0 + 3);
	/* From now on the neighbor may send at our required interval. */
	assert_int_equal(acts, BFD_ACT_POLL_ENDED | BFD_ACT_DETECT);
	assert_false(sent(&f, false).poll);
	assert_int_equal(receive_final(&f, T0 + 4), 0);
}

static void
a_session_that_is_slow_anyway_needs_no_poll_sequence_in_up(void **state)
{
	struct bfd_conf conf = usual;
	struct bfd_fsm f;

	conf.min_tx_us = conf.min_rx_us = 2 * BFD_SLOW_US;
	f = begun(&conf);
	assert_int_equal(bfd_fsm_tx_us(&f), 2 * BFD_SLOW_US);
	receive(&f, BFD_DOWN, T0);
	receive(&f, BFD_UP, T0);
	assert_int_equal(f.state, BFD_UP);
	assert_false(f.polling);
}

static void
a_longer_transmit_interval_waits_for_the_final(void **state)
{
	struct bfd_fsm f = up_later(&usual);
	unsigned int acts = timers(&f, 500 * MS_US, 50 * MS_US, LATER);

	assert_int_equal(acts, 0);
	assert_true(sent(&f, false).poll);
	assert_int_equal(sent(&f, false).min_tx_us, 500 * MS_US);
	assert_int_equal(bfd_fsm_tx_us(&f), 50 * MS_US);
	acts = receive_final(&f, LATER + MS);
	assert_int_equal(acts, BFD_ACT_POLL_ENDED | BFD_ACT_TX);
	assert_int_equal(bfd_fsm_tx_us(&f), 500 * MS_US);
}

static void
a_shorter_transmit_interval_is_used_at_once(void **state)
{
	struct bfd_conf conf = usual;
	struct bfd_fsm f;

	conf.min_tx_us = 500 * MS_US;
	f = up_later(&conf);
	assert_int_equal(timers(&f, 100 * MS_US, 50 * MS_US, LATER), BFD_ACT_TX);
	assert_true(f.polling);
	assert_int_equal(bfd_fsm_tx_us(&f), 100 * MS_US);
}

static void
a_shorter_required_interval_waits_for_the_final(void **state)
{
	struct bfd_conf conf = usual;
	struct bfd_fsm f;

	conf.min_rx_us = 500 * MS_US;
	f = up_later(&conf);
	assert_int_equal(bfd_fsm_detect_us(&f), 4 * 500 * MS_US);
	assert_int_equal(timers(&f, 50 * MS_US, 100 * MS_US, LATER), 0);
	assert_int_equal(sent(&f, false).min_rx_us, 100 * MS_US);
	assert_int_equal(bfd_fsm_detect_us(&f), 4 * 500 * MS_US);
	assert_int_equal(receive_final(&f, LATER + MS),
			 BFD_ACT_POLL_ENDED | BFD_ACT_DETECT);
	assert_int_equal(bfd_fsm_detect_us(&f), 4 * 100 * MS_US);
}

static void
a_longer_required_interval_is_used_at_once(void **state)
{
	struct bfd_fsm f = up_later(&usual);

	assert_int_equal(timers(&f, 50 * MS_US, 500 * MS_US, LATER), BFD_ACT_DETECT);
	assert_true(f.polling);
	assert_int_equal(bfd_fsm_detect_us(&f), 4 * 500 * MS_US);
}

static void
a_change_during_a_poll_sequence_waits_for_the_next(void **state)
{
	uint64_t ended = LATER + MS;
	struct bfd_fsm f = up_later(&usual);

	timers(&f, 500 * MS_US, 50 * MS_US, LATER);
	timers(&f, 600 * MS_US, 70 * MS_US, LATER + 1);
	assert_int_equal(sent(&f, false).min_tx_us, 500 * MS_US);
	assert_int_equal(sent(&f, false).min_rx_us, 50 * MS_US);
	receive_final(&f, ended);
	assert_int_equal(bfd_fsm_tx_us(&f), 500 * MS_US);
	/* A late Final of the last sequence is no Final of the next one. */
	assert_false(f.polling);
	receive_final(&f, ended + 10 * MS);
	assert_int_equal(sent(&f, false).min_tx_us, 500 * MS_US);
	receive(&f, BFD_UP, ended + S);
	assert_true(f.polling);
	assert_int_equal(sent(&f, false).min_tx_us, 600 * MS_US);
	assert_int_equal(sent(&f, false).min_rx_us, 70 * MS_US);
	assert_int_equal(bfd_fsm_tx_us(&f), 500 * MS_US);
	receive_final(&f, ended + S + MS);
	assert_int_equal(bfd_fsm_tx_us(&f), 600 * MS_US);
}

static void
down_is_slow_at_once_and_ends_a_poll_sequence(void **state)
{
	struct bfd_fsm f = up_later(&usual);

	timers(&f, 20 * MS_US, 30 * MS_US, LATER);
	assert_true(f.polling);
	assert_true(receive(&f, BFD_DOWN, LATER + 1) & BFD_ACT_TX);
	assert_false(sent(&f, false).poll);
	assert_int_equal(sent(&f, false).min_tx_us, BFD_SLOW_US);
	assert_int_equal(sent(&f, false).min_rx_us, BFD_SLOW_US);
	assert_int_equal(bfd_fsm_tx_us(&f), BFD_SLOW_US);
	/* A change while Down is used at once, is sent at once, and needs no sequence. */
	assert_true(timers(&f, 2 * BFD_SLOW_US, 3 * BFD_SLOW_US, LATER + 2) & BFD_ACT_SEND);
	assert_false(f.polling);
	assert_int_equal(bfd_fsm_tx_us(&f), 2 * BFD_SLOW_US);
	assert_int_equal(sent(&f, false).min_rx_us, 3 * BFD_SLOW_US);
	/* The first sequence of the next Up waits for no earlier sequence. */
	f = up(&usual);
	receive(&f, BFD_DOWN, T0 + 1);
	receive(&f, BFD_DOWN, T0 + 2);
	receive(&f, BFD_UP, T0 + 3);
	assert_int_equal(f.state, BFD_UP);
	assert_true(f.polling);
}

static void
the_neighbors_required_interval_is_the_least(void **state)
{
	struct bfd_fsm f = up(&usual);
	struct bfd_packet p = packet(BFD_UP);

	p.min_rx_us = 300 * MS_US;
	assert_true(bfd_fsm_receive(&f, &p, T0 + 1) & BFD_ACT_TX);
	assert_int_equal(bfd_fsm_tx_us(&f), 300 * MS_US);
	p.min_rx_us = 0;
	assert_true(bfd_fsm_receive(&f, &p, T0 + 2) & BFD_ACT_TX);
	assert_int_equal(bfd_fsm_tx_us(&f), 0);
	p.min_rx_us = 20 * MS_US;
	assert_int_equal(bfd_fsm_receive(&f, &p, T0 + 3),
			 BFD_ACT_REMOTE | BFD_ACT_TX | BFD_ACT_SEND);
	assert_int_equal(bfd_fsm_tx_us(&f), 50 * MS_US);
}

static void
a_neighbor_that_wanted_no_packets_gets_some_once_it_is_forgotten(void **state)
{
	struct bfd_fsm f = up(&usual);
	struct bfd_packet p = packet(BFD_UP);

	p.min_rx_us = 0;
	bfd_fsm_receive(&f, &p, T0 + 1);
	assert_int_equal(bfd_fsm_tx_us(&f), 0);
	assert_true(bfd_fsm_expired(&f, T0 + S) & BFD_ACT_SEND);
	assert_int_equal(bfd_fsm_tx_us(&f), BFD_SLOW_US);
	/* A neighbor in demand mode also gets a packet about a change of state. */
	f = up(&usual);
	bfd_fsm_receive(&f, &p, T0 + 1);
	assert_true(bfd_fsm_echo_lost(&f, T0 + 2) & BFD_ACT_SEND);
}

static void
a_neighbor_in_demand_mode_gets_poll_sequences_only(void **state)
{
	struct bfd_fsm f = up_later(&usual);
	struct bfd_packet p = packet(BFD_UP);

	p.demand = true;
	assert_true(bfd_fsm_receive(&f, &p, LATER) & BFD_ACT_TX);
	assert_int_equal(bfd_fsm_tx_us(&f), 0);
	/* Detection of the neighbor goes on. */
	assert_int_equal(bfd_fsm_expire_at(&f), LATER + 200 * MS);
	assert_int_equal(timers(&f, 60 * MS_US, 50 * MS_US, LATER),
			 BFD_ACT_TX | BFD_ACT_SEND);
	assert_int_equal(bfd_fsm_tx_us(&f), 50 * MS_US);
	p.final = true;
	assert_int_equal(bfd_fsm_receive(&f, &p, LATER + 1),
			 BFD_ACT_POLL_ENDED | BFD_ACT_TX);
	assert_int_equal(bfd_fsm_tx_us(&f), 0);
	/* Demand mode needs both sides Up. */
	p.final = false;
	p.state = BFD_INIT;
	bfd_fsm_receive(&f, &p, LATER + 2);
	assert_int_equal(bfd_fsm_tx_us(&f), 60 * MS_US);
	f.state = BFD_INIT; /* only this side is not Up */
	p.state = f.remote_state = BFD_UP;
	assert_int_not_equal(bfd_fsm_tx_us(&f), 0);
	f.state = BFD_UP;
	p.state = BFD_DOWN;
	bfd_fsm_receive(&f, &p, LATER + 3);
	assert_int_equal(bfd_fsm_tx_us(&f), BFD_SLOW_US);
	assert_false(sent(&f, false).demand);
}

static void
the_multiplier_and_other_fields_need_no_poll_sequence(void **state)
{
	struct bfd_fsm f = up_later(&usual);
	struct bfd_conf conf = usual;

	conf.mult = 7;
	conf.cbit = true;
	conf.min_echo_rx_us = 9;
	assert_int_equal(bfd_fsm_configure(&f, &conf, LATER), BFD_ACT_SEND);
	assert_false(f.polling);
	assert_int_equal(sent(&f, false).mult, 7);
	assert_true(sent(&f, false).cbit);
	assert_int_equal(sent(&f, false).min_echo_rx_us, 9);
	assert_int_equal(bfd_fsm_configure(&f, &conf, LATER), 0);
}

static void
a_configuration_with_zeros_sends_valid_packets(void **state)
{
	const struct bfd_conf conf = {0};
	struct bfd_fsm f = up(&conf);

	assert_int_equal(sent(&f, false).mult, 1);
	assert_int_equal(sent(&f, false).min_tx_us, 1);
	assert_int_equal(bfd_fsm_configure(&f, &conf, LATER), 0);
}

static void
jitter_is_within_its_bounds_and_reaches_them(void **state)
{
	static const uint32_t interval[] = {4, 1000, 50000, 1000000, UINT32_MAX};

	for (unsigned int i = 0; i < 5; i++) {
		uint64_t us = interval[i];

		for (unsigned int mult = 1; mult <= 3; mult++) {
			uint64_t most = us * (mult == 1 ? 90 : 100) / 100;

			assert_int_equal(bfd_jitter_us(interval[i], (uint8_t)mult, 0),
					 us * 75 / 100);
			for (uint64_t r = 0; r <= UINT32_MAX; r += 0x10001) {
				uint32_t got = bfd_jitter_us(interval[i], (uint8_t)mult,
							     (uint32_t)r);

				assert_in_range(got, us * 75 / 100, most);
			}
			assert_in_range(
				bfd_jitter_us(interval[i], (uint8_t)mult, UINT32_MAX),
				most - most / 1000 - 2, most);
		}
	}
	assert_int_equal(bfd_jitter_us(0, 3, 5), 0);
	assert_int_equal(bfd_jitter_us(1, 3, 0), 1);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(up_speeds_up_by_a_poll_sequence),
		cmocka_unit_test(
			a_session_that_is_slow_anyway_needs_no_poll_sequence_in_up),
		cmocka_unit_test(a_longer_transmit_interval_waits_for_the_final),
		cmocka_unit_test(a_shorter_transmit_interval_is_used_at_once),
		cmocka_unit_test(a_shorter_required_interval_waits_for_the_final),
		cmocka_unit_test(a_longer_required_interval_is_used_at_once),
		cmocka_unit_test(a_change_during_a_poll_sequence_waits_for_the_next),
		cmocka_unit_test(down_is_slow_at_once_and_ends_a_poll_sequence),
		cmocka_unit_test(the_neighbors_required_interval_is_the_least),
		cmocka_unit_test(
			a_neighbor_that_wanted_no_packets_gets_some_once_it_is_forgotten),
		cmocka_unit_test(a_neighbor_in_demand_mode_gets_poll_sequences_only),
		cmocka_unit_test(the_multiplier_and_other_fields_need_no_poll_sequence),
		cmocka_unit_test(a_configuration_with_zeros_sends_valid_packets),
		cmocka_unit_test(jitter_is_within_its_bounds_and_reaches_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
