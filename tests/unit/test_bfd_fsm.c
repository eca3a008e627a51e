/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state machine of one BFD session, packet by packet. test_bfd_timers.c tests the
 * intervals, test_bfd_link.c tests two sessions that talk.
 *
 * link: fpm-dataplane/bfd/fsm.c fpm-dataplane/bfd/packet.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

#include "bfd_session.h"

/* --- states --------------------------------------------------------------------------- */

static void
a_session_begins_down_and_slow(void **state)
{
	struct bfd_fsm f = begun(&usual);
	struct bfd_packet p = sent(&f, false);

	assert_int_equal(f.state, BFD_DOWN);
	assert_int_equal(f.diag, BFD_DIAG_NONE);
	assert_int_equal(f.state_at, T0);
	assert_int_equal(bfd_fsm_tx_us(&f), BFD_SLOW_US);
	assert_int_equal(bfd_fsm_detect_us(&f), 0);
	assert_true(bfd_fsm_expire_at(&f) == BFD_NEVER);
	assert_int_equal(p.state, BFD_DOWN);
	assert_int_equal(p.my_discr, OURS);
	assert_int_equal(p.your_discr, 0);
	assert_int_equal(p.min_tx_us, BFD_SLOW_US);
	assert_int_equal(p.min_rx_us, BFD_SLOW_US);
	assert_int_equal(p.mult, 3);
	assert_false(p.poll || p.final || p.demand || p.cbit);
}

static void
each_state_follows_from_the_state_received(void **state)
{
	/* [ours][received]; RFC 5880, sections 6.2 and 6.8.6 */
	static const uint8_t next[4][4] = {
		{BFD_ADMIN_DOWN, BFD_ADMIN_DOWN, BFD_ADMIN_DOWN, BFD_ADMIN_DOWN},
		{BFD_DOWN, BFD_INIT, BFD_UP, BFD_DOWN},
		{BFD_DOWN, BFD_INIT, BFD_UP, BFD_UP},
		{BFD_DOWN, BFD_DOWN, BFD_UP, BFD_UP},
	};

	for (unsigned int own = BFD_ADMIN_DOWN; own <= BFD_UP; own++) {
		for (unsigned int got = BFD_ADMIN_DOWN; got <= BFD_UP; got++) {
			struct bfd_fsm f = in_state(own);
			unsigned int acts = receive(&f, got, T0 + 7);
			bool changed = next[own][got] != own;

			assert_int_equal(f.state, next[own][got]);
			assert_int_equal((acts & BFD_ACT_STATE) != 0, changed);
			assert_int_equal((acts & BFD_ACT_SEND) != 0, changed);
			assert_int_equal(f.state_at == T0 + 7, changed);
			if (changed && f.state == BFD_DOWN)
				assert_int_equal(f.diag, BFD_DIAG_NEIGHBOR_DOWN);
			if (f.state == BFD_UP)
				assert_int_equal(f.diag, BFD_DIAG_NONE);
			assert_int_equal(f.was_up, own == BFD_UP || f.state == BFD_UP);
			assert_int_equal(f.n_downs, own == BFD_UP && f.state == BFD_DOWN);
			/* A failure: the session is Up, and Down is received. */
			assert_int_equal(bfd_fsm_is_failed(&f),
					 own == BFD_UP && got == BFD_DOWN);
		}
	}
}

static void
a_packet_for_another_discriminator_changes_nothing(void **state)
{
	struct bfd_fsm f = up(&usual), before = f;
	struct bfd_packet p = packet(BFD_DOWN);

	p.your_discr = OURS + 1;
	assert_int_equal(bfd_fsm_receive(&f, &p, T0 + 9), BFD_ACT_FOREIGN);
	assert_memory_equal(&f, &before, sizeof(f));
}

static void
a_neighbor_that_begins_again_takes_the_session_down(void **state)
{
	struct bfd_fsm f = up(&usual);
	struct bfd_packet p = packet(BFD_DOWN);

	p.my_discr = 77;
	p.your_discr = 0;
	assert_true(bfd_fsm_receive(&f, &p, T0 + 9) & BFD_ACT_STATE);
	assert_int_equal(f.state, BFD_DOWN);
	assert_int_equal(f.diag, BFD_DIAG_NEIGHBOR_DOWN);
	assert_int_equal(sent(&f, false).your_discr, 77);
	assert_true(bfd_fsm_is_failed(&f));
}

static void
the_session_keeps_its_history(void **state)
{
	struct bfd_fsm f = up(&usual);

	receive(&f, BFD_DOWN, T0 + 1);
	receive(&f, BFD_DOWN, T0 + 2);
	assert_int_equal(f.state, BFD_INIT);
	/* The diagnostic stays until Up, and so does the failure. */
	assert_int_equal(sent(&f, false).diag, BFD_DIAG_NEIGHBOR_DOWN);
	assert_true(bfd_fsm_is_failed(&f));
	receive(&f, BFD_UP, T0 + 3);
	assert_int_equal(f.state, BFD_UP);
	assert_int_equal(sent(&f, false).diag, BFD_DIAG_NONE);
	assert_false(bfd_fsm_is_failed(&f));
	assert_int_equal(f.down_diag, BFD_DIAG_NEIGHBOR_DOWN);
	assert_int_equal(f.n_downs, 1);
	assert_int_equal(f.state_at, T0 + 3);
	receive(&f, BFD_DOWN, T0 + 4);
	assert_int_equal(f.n_downs, 2);
	assert_true(f.was_up);
}

static void
each_field_of_the_neighbor_is_kept_and_its_change_reported(void **state)
{
	for (unsigned int field = 0; field < 9; field++) {
		struct bfd_fsm f = up(&usual);
		struct bfd_packet p = packet(BFD_UP);
		unsigned int acts;

		assert_int_equal(bfd_fsm_receive(&f, &p, T0 + 1), 0);
		if (field == 0)
			p.my_discr = 5;
		else if (field == 1)
			p.min_tx_us = 300 * MS_US;
		else if (field == 2)
			p.min_rx_us = 300 * MS_US;
		else if (field == 3)
			p.min_echo_rx_us = 6;
		else if (field == 4)
			p.mult = 5;
		else if (field == 5)
			p.diag = 31;
		else if (field == 6)
			p.demand = true;
		else if (field == 7)
			p.cbit = true;
		else
			p.state = BFD_INIT;
		acts = bfd_fsm_receive(&f, &p, T0 + 2);
		assert_int_equal(acts & BFD_ACT_REMOTE, BFD_ACT_REMOTE);
		assert_int_equal((acts & BFD_ACT_TX) != 0, field == 2 || field == 6);
		assert_int_equal((acts & BFD_ACT_DETECT) != 0, field == 1 || field == 4);
		assert_int_equal(bfd_fsm_receive(&f, &p, T0 + 3), 0);
		assert_int_equal(f.your_discr, p.my_discr);
		assert_int_equal(f.remote_min_tx_us, p.min_tx_us);
		assert_int_equal(f.remote_min_rx_us, p.min_rx_us);
		assert_int_equal(f.remote_min_echo_rx_us, p.min_echo_rx_us);
		assert_int_equal(f.remote_mult, p.mult);
		assert_int_equal(f.remote_diag, p.diag);
		assert_int_equal(f.remote_demand, p.demand);
		assert_int_equal(f.remote_cbit, p.cbit);
		assert_int_equal(f.remote_state, p.state);
	}
}

static void
a_poll_is_answered_at_once_in_every_state_but_admin_down(void **state)
{
	for (unsigned int own = BFD_ADMIN_DOWN; own <= BFD_UP; own++) {
		struct bfd_fsm f = in_state(own);
		struct bfd_packet p = packet(BFD_UP);

		p.poll = true;
		assert_int_equal((bfd_fsm_receive(&f, &p, T0 + 1) & BFD_ACT_FINAL) != 0,
				 own != BFD_ADMIN_DOWN);
	}
	{
		struct bfd_fsm f = up_later(&usual);
		struct bfd_packet p = packet(BFD_UP);

		/* A Final is sent even in demand mode and with a required interval of 0. */
		p.poll = p.demand = true;
		p.min_rx_us = 0;
		assert_true(bfd_fsm_receive(&f, &p, LATER) & BFD_ACT_FINAL);
		timers(&f, 60 * MS_US, 50 * MS_US, LATER);
		assert_true(f.polling);
		p = sent(&f, true);
		assert_true(p.final);
		assert_false(p.poll);
		p = sent(&f, false);
		assert_true(p.poll);
		assert_false(p.final);
	}
}

/* --- detection ------------------------------------------------------------------------ */

static void
the_detection_time_is_the_neighbors_multiplier_times_the_slower_interval(void **state)
{
	struct bfd_fsm f = up(&usual);
	struct bfd_packet p = packet(BFD_UP);

	assert_int_equal(bfd_fsm_detect_us(&f), 4 * 50 * MS_US);
	p.min_tx_us = 70 * MS_US;
	assert_true(bfd_fsm_receive(&f, &p, T0 + 5) & BFD_ACT_DETECT);
	assert_int_equal(bfd_fsm_detect_us(&f), 4 * 70 * MS_US);
	assert_int_equal(bfd_fsm_expire_at(&f), T0 + 5 + 280 * MS);
	/* The largest values do not overflow. */
	p.min_tx_us = UINT32_MAX;
	p.mult = 255;
	bfd_fsm_receive(&f, &p, T0 + 6);
	assert_int_equal(bfd_fsm_detect_us(&f), 255ull * UINT32_MAX);
}

static void
silence_for_a_detection_time_is_a_failure(void **state)
{
	struct bfd_fsm f = up(&usual), before = f;
	uint64_t at = bfd_fsm_expire_at(&f);
	unsigned int acts;

	assert_int_equal(at, T0 + 200 * MS);
	assert_int_equal(bfd_fsm_expired(&f, at - 1), 0);
	assert_memory_equal(&f, &before, sizeof(f));
	acts = bfd_fsm_expired(&f, at);
	assert_int_equal(acts, BFD_ACT_STATE | BFD_ACT_REMOTE | BFD_ACT_SEND | BFD_ACT_TX |
				       BFD_ACT_DETECT);
	assert_int_equal(f.state, BFD_DOWN);
	assert_int_equal(f.diag, BFD_DIAG_EXPIRED);
	assert_int_equal(f.down_diag, BFD_DIAG_EXPIRED);
	assert_int_equal(f.n_downs, 1);
	assert_int_equal(f.state_at, at);
	assert_true(bfd_fsm_is_failed(&f));
	/* The neighbor is forgotten: 6.8.1. */
	assert_int_equal(sent(&f, false).your_discr, 0);
	assert_int_equal(sent(&f, false).diag, BFD_DIAG_EXPIRED);
	assert_int_equal(bfd_fsm_tx_us(&f), BFD_SLOW_US);
	assert_true(bfd_fsm_expire_at(&f) == BFD_NEVER);
	assert_int_equal(bfd_fsm_expired(&f, at + 1000 * S), 0);
}

static void
silence_in_init_is_no_failure_of_a_session_that_never_was_up(void **state)
{
	struct bfd_fsm f = in_state(BFD_INIT);

	bfd_fsm_expired(&f, bfd_fsm_expire_at(&f));
	assert_int_equal(f.state, BFD_DOWN);
	assert_int_equal(f.diag, BFD_DIAG_EXPIRED);
	assert_int_equal(f.your_discr, 0);
	assert_false(bfd_fsm_is_failed(&f) || f.was_up);
	assert_int_equal(f.n_downs, 0);
	assert_int_equal(f.down_diag, BFD_DIAG_NONE);
}

static void
silence_in_down_forgets_the_neighbor_only(void **state)
{
	struct bfd_fsm f = begun(&usual);
	unsigned int acts;

	receive(&f, BFD_UP, T0);
	assert_int_equal(f.state, BFD_DOWN);
	assert_int_equal(f.your_discr, THEIRS);
	acts = bfd_fsm_expired(&f, bfd_fsm_expire_at(&f));
	assert_int_equal(f.your_discr, 0);
	assert_int_equal(acts & (BFD_ACT_STATE | BFD_ACT_REMOTE), BFD_ACT_REMOTE);
	assert_int_equal(f.diag, BFD_DIAG_NONE);
	assert_int_equal(f.state_at, T0);
}

static void
packets_of_forwarders_and_a_restart_move_the_detection_time(void **state)
{
	struct bfd_fsm f = up(&usual);

	bfd_fsm_heard(&f, T0 + 30 * MS);
	assert_int_equal(bfd_fsm_expire_at(&f), T0 + 230 * MS);
	bfd_fsm_heard(&f, T0 + 10 * MS);
	assert_int_equal(bfd_fsm_expire_at(&f), T0 + 230 * MS);
	bfd_fsm_resume(&f, T0 + 5 * S);
	assert_int_equal(bfd_fsm_expired(&f, T0 + 5 * S), 0);
	assert_int_equal(bfd_fsm_expire_at(&f), T0 + 5 * S + 200 * MS);
	f = begun(&usual);
	bfd_fsm_resume(&f, T0 + 5 * S);
	assert_int_equal(f.heard_at, 0);
}

static void
a_required_interval_of_0_of_ours_ends_detection(void **state)
{
	struct bfd_fsm f = up_later(&usual);

	assert_true(timers(&f, 50 * MS_US, 0, LATER) & BFD_ACT_DETECT);
	assert_int_equal(bfd_fsm_detect_us(&f), 0);
	receive_final(&f, LATER + 1);
	assert_int_equal(bfd_fsm_expired(&f, LATER + 100 * S), 0);
	/* Detection begins again only when the neighbor knows that packets are wanted. */
	timers(&f, 50 * MS_US, 50 * MS_US, LATER + 100 * S);
	assert_int_equal(bfd_fsm_expired(&f, LATER + 100 * S), 0);
	assert_int_equal(bfd_fsm_detect_us(&f), 0);
	assert_true(receive_final(&f, LATER + 101 * S) & BFD_ACT_DETECT);
	assert_int_equal(bfd_fsm_expire_at(&f), LATER + 101 * S + 200 * MS);
}

/* --- passive, AdminDown, echo --------------------------------------------------------- */

static void
a_passive_session_is_silent_until_it_is_spoken_to(void **state)
{
	struct bfd_conf conf = usual;
	struct bfd_fsm f;
	unsigned int acts;

	conf.passive = true;
	f = begun(&conf);
	assert_int_equal(bfd_fsm_tx_us(&f), 0);
	acts = receive(&f, BFD_DOWN, T0);
	assert_int_equal(f.state, BFD_INIT);
	assert_int_equal(acts & (BFD_ACT_TX | BFD_ACT_SEND), BFD_ACT_TX | BFD_ACT_SEND);
	assert_int_equal(bfd_fsm_tx_us(&f), BFD_SLOW_US);
	receive(&f, BFD_UP, T0);
	assert_int_equal(f.state, BFD_UP);
	/* If the neighbor falls silent, a passive session sends nothing either. */
	acts = bfd_fsm_expired(&f, T0 + bfd_fsm_detect_us(&f) * 1000);
	assert_int_equal(acts & (BFD_ACT_STATE | BFD_ACT_TX | BFD_ACT_SEND),
			 BFD_ACT_STATE | BFD_ACT_TX);
	assert_int_equal(bfd_fsm_tx_us(&f), 0);
	assert_true(bfd_fsm_is_failed(&f));
	/* A session that becomes active sends packets. */
	assert_int_equal(bfd_fsm_configure(&f, &usual, T0 + 10 * S),
			 BFD_ACT_TX | BFD_ACT_SEND);
}

static void
shutdown_tells_the_neighbor_for_a_detection_time(void **state)
{
	struct bfd_fsm f = up(&usual);
	unsigned int acts = bfd_fsm_shutdown(&f, true, T0 + 1);

	assert_int_equal(acts & (BFD_ACT_STATE | BFD_ACT_SEND | BFD_ACT_TX),
			 BFD_ACT_STATE | BFD_ACT_SEND | BFD_ACT_TX);
	assert_int_equal(f.state, BFD_ADMIN_DOWN);
	assert_int_equal(sent(&f, false).state, BFD_ADMIN_DOWN);
	assert_int_equal(sent(&f, false).diag, BFD_DIAG_ADMIN);
	assert_int_equal(sent(&f, false).your_discr, THEIRS);
	assert_int_equal(sent(&f, false).min_tx_us, BFD_SLOW_US);
	assert_int_equal(bfd_fsm_tx_us(&f), BFD_SLOW_US);
	assert_int_equal(f.silent_at, T0 + 1 + 3 * S);
	assert_int_equal(f.down_diag, BFD_DIAG_ADMIN);
	assert_int_equal(f.n_downs, 0);
	assert_false(bfd_fsm_is_failed(&f));
	/* A second shutdown changes nothing. */
	assert_int_equal(bfd_fsm_shutdown(&f, true, T0 + 2), 0);
	assert_int_equal(f.silent_at, T0 + 1 + 3 * S);
	/* If the neighbor's required interval is longer, the detection time is longer. */
	f = up(&usual);
	f.remote_min_rx_us = 4 * BFD_SLOW_US;
	bfd_fsm_shutdown(&f, true, T0 + 1);
	assert_int_equal(f.silent_at, T0 + 1 + 12 * S);
}

static void
shutdown_without_a_neighbor_is_silent_at_once(void **state)
{
	struct bfd_conf conf = usual;
	struct bfd_fsm f = begun(&usual);

	assert_false(bfd_fsm_shutdown(&f, true, T0 + 5) & BFD_ACT_SEND);
	assert_int_equal(f.silent_at, T0 + 5);
	conf.shutdown = true;
	f = begun(&conf);
	assert_int_equal(f.state, BFD_ADMIN_DOWN);
	assert_int_equal(f.diag, BFD_DIAG_ADMIN);
	assert_int_equal(f.silent_at, T0);
	/* A new configuration does not make the silent session send. */
	conf.mult = 9;
	assert_int_equal(bfd_fsm_configure(&f, &conf, T0 + 6), 0);
}

static void
after_no_shutdown_the_session_begins_again(void **state)
{
	struct bfd_fsm f = up(&usual);
	unsigned int acts;

	bfd_fsm_shutdown(&f, true, T0 + 1);
	receive(&f, BFD_DOWN, T0 + 2);
	assert_int_equal(f.state, BFD_ADMIN_DOWN);
	acts = bfd_fsm_shutdown(&f, false, T0 + 3);
	assert_int_equal(acts, BFD_ACT_STATE | BFD_ACT_SEND);
	assert_int_equal(f.state, BFD_DOWN);
	assert_int_equal(f.diag, BFD_DIAG_NONE);
	assert_true(f.silent_at == BFD_NEVER);
	assert_int_equal(f.state_at, T0 + 3);
	assert_false(bfd_fsm_is_failed(&f));
	receive(&f, BFD_DOWN, T0 + 4);
	receive(&f, BFD_INIT, T0 + 5);
	assert_int_equal(f.state, BFD_UP);
}

static void
in_admin_down_the_neighbor_is_forgotten_after_its_last_packet(void **state)
{
	struct bfd_fsm f = in_state(BFD_ADMIN_DOWN);

	receive(&f, BFD_DOWN, T0 + S);
	assert_int_equal(bfd_fsm_expire_at(&f), T0 + 5 * S);
	assert_int_equal(bfd_fsm_expired(&f, T0 + 5 * S) & BFD_ACT_STATE, 0);
	assert_int_equal(f.your_discr, 0);
	assert_int_equal(f.state, BFD_ADMIN_DOWN);
	assert_int_equal(f.diag, BFD_DIAG_ADMIN);
}

static void
admin_down_of_either_side_ends_a_failure(void **state)
{
	for (unsigned int side = 0; side < 2; side++) {
		struct bfd_fsm f = up(&usual);

		bfd_fsm_expired(&f, T0 + S);
		assert_true(bfd_fsm_is_failed(&f));
		if (side == 0)
			bfd_fsm_shutdown(&f, true, T0 + 2 * S);
		else
			/*
			 * The actions report the neighbor's AdminDown as a change of the
			 * neighbor.
			 */
			assert_true(receive(&f, BFD_ADMIN_DOWN, T0 + 2 * S) &
				    BFD_ACT_REMOTE);
		assert_false(bfd_fsm_is_failed(&f));
		if (side == 0)
			bfd_fsm_shutdown(&f, false, T0 + 3 * S);
		receive(&f, BFD_DOWN, T0 + 3 * S);
		assert_false(bfd_fsm_is_failed(&f));
		bfd_fsm_expired(&f, T0 + 30 * S);
		assert_false(bfd_fsm_is_failed(&f));
	}
}

static void
lost_echo_packets_are_a_failure_in_up_only(void **state)
{
	for (unsigned int own = BFD_ADMIN_DOWN; own <= BFD_UP; own++) {
		struct bfd_fsm f = in_state(own);
		unsigned int acts = bfd_fsm_echo_lost(&f, T0 + 1);

		assert_int_equal((acts & BFD_ACT_STATE) != 0, own == BFD_UP);
		assert_int_equal(f.state, own == BFD_UP ? BFD_DOWN : own);
		assert_int_equal(bfd_fsm_is_failed(&f), own == BFD_UP);
		if (own == BFD_UP) {
			assert_int_equal(f.diag, BFD_DIAG_ECHO);
			assert_true(acts & BFD_ACT_SEND);
			assert_int_equal(f.your_discr, THEIRS);
			assert_int_equal(bfd_fsm_tx_us(&f), BFD_SLOW_US);
		}
	}
}

static void
echo_packets_need_up_and_the_neighbors_leave(void **state)
{
	struct bfd_conf conf = usual;
	struct bfd_packet p = packet(BFD_UP);
	struct bfd_fsm f;

	conf.echo = true;
	conf.min_echo_rx_us = 11;
	f = up(&conf);
	assert_int_equal(bfd_fsm_echo_us(&f), 0);
	p.min_echo_rx_us = 20 * MS_US;
	assert_int_equal(bfd_fsm_receive(&f, &p, T0), BFD_ACT_REMOTE | BFD_ACT_ECHO);
	assert_int_equal(bfd_fsm_echo_us(&f), 30 * MS_US);
	p.min_echo_rx_us = 40 * MS_US;
	assert_true(bfd_fsm_receive(&f, &p, T0) & BFD_ACT_ECHO);
	assert_int_equal(bfd_fsm_echo_us(&f), 40 * MS_US);
	assert_int_equal(sent(&f, false).min_echo_rx_us, 11);
	/* With several hops, with echo off, or in Down, no echo packets are sent. */
	conf.multihop = true;
	assert_true(bfd_fsm_configure(&f, &conf, T0) & BFD_ACT_ECHO);
	assert_int_equal(bfd_fsm_echo_us(&f), 0);
	assert_int_equal(sent(&f, false).min_echo_rx_us, 11);
	conf.multihop = conf.echo = false;
	bfd_fsm_configure(&f, &conf, T0);
	assert_int_equal(bfd_fsm_echo_us(&f), 0);
	conf.echo = true;
	bfd_fsm_configure(&f, &conf, T0);
	assert_int_equal(bfd_fsm_echo_us(&f), 40 * MS_US);
	assert_true(bfd_fsm_expired(&f, T0 + S) & BFD_ACT_ECHO);
	assert_int_equal(bfd_fsm_echo_us(&f), 0);
}

/* --- steady state --------------------------------------------------------------------- */

static void
a_steady_session_ignores_exactly_the_expected_packet(void **state)
{
	struct bfd_packet p = packet(BFD_UP);
	uint8_t expect[BFD_PACKET_BYTES];
	struct bfd_fsm f = up(&usual);

	p.diag = 17;
	p.cbit = true;
	p.min_echo_rx_us = 0x01020304;
	bfd_fsm_receive(&f, &p, T0);
	assert_true(bfd_fsm_is_steady(&f, expect));
	for (unsigned int bit = 0; bit <= 8 * sizeof(expect); bit++) {
		uint8_t wire[BFD_PACKET_BYTES];
		struct bfd_fsm g = f, want = f;

		memcpy(wire, expect, sizeof(wire));
		if (bit < 8 * sizeof(expect))
			wire[bit / 8] ^= (uint8_t)(1u << bit % 8);
		want.heard_at = T0 + MS;
		if (bfd_packet_read(&p, wire, sizeof(wire)) != BFD_PACKET_OK)
			continue;
		if (bit == 8 * sizeof(expect)) {
			assert_int_equal(bfd_fsm_receive(&g, &p, T0 + MS), 0);
			assert_memory_equal(&g, &want, sizeof(g));
			bfd_fsm_heard(&f, T0 + MS);
			assert_memory_equal(&g, &f, sizeof(g));
		} else if (!p.final) {
			/*
			 * A Final that no poll sequence waits for changes nothing either.
			 */
			assert_int_not_equal(bfd_fsm_receive(&g, &p, T0 + MS), 0);
		}
	}
}

static void
a_session_is_not_steady_before_both_sides_are_up_and_polls_have_ended(void **state)
{
	uint8_t expect[BFD_PACKET_BYTES], before[BFD_PACKET_BYTES];
	struct bfd_fsm f;

	memset(expect, 0xa5, sizeof(expect));
	memcpy(before, expect, sizeof(expect));
	for (unsigned int own = BFD_ADMIN_DOWN; own < BFD_UP; own++) {
		f = in_state(own);
		assert_false(bfd_fsm_is_steady(&f, expect));
	}
	f = begun(&usual);
	receive(&f, BFD_DOWN, T0);
	receive(&f, BFD_INIT, T0);
	assert_int_equal(f.state, BFD_UP);
	assert_true(f.polling);
	receive(&f, BFD_UP, T0);
	assert_false(bfd_fsm_is_steady(&f, expect)); /* our Poll */
	{
		struct bfd_packet p = packet(BFD_INIT);

		p.final = true;
		bfd_fsm_receive(&f, &p, T0);
	}
	assert_false(f.polling);
	assert_false(bfd_fsm_is_steady(&f, expect)); /* the neighbor's Init */
	receive(&f, BFD_UP, T0);
	assert_memory_equal(expect, before, sizeof(expect));
	assert_true(bfd_fsm_is_steady(&f, expect));
	memcpy(before, expect, sizeof(expect));
	timers(&f, 60 * MS_US, 50 * MS_US, T0 + 1);
	assert_false(f.polling);
	assert_false(bfd_fsm_is_steady(&f, expect)); /* new timers wait for a sequence */
	assert_memory_equal(expect, before, sizeof(expect));
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_session_begins_down_and_slow),
		cmocka_unit_test(each_state_follows_from_the_state_received),
		cmocka_unit_test(a_packet_for_another_discriminator_changes_nothing),
		cmocka_unit_test(a_neighbor_that_begins_again_takes_the_session_down),
		cmocka_unit_test(the_session_keeps_its_history),
		cmocka_unit_test(
			each_field_of_the_neighbor_is_kept_and_its_change_reported),
		cmocka_unit_test(a_poll_is_answered_at_once_in_every_state_but_admin_down),
		cmocka_unit_test(
			the_detection_time_is_the_neighbors_multiplier_times_the_slower_interval),
		cmocka_unit_test(silence_for_a_detection_time_is_a_failure),
		cmocka_unit_test(
			silence_in_init_is_no_failure_of_a_session_that_never_was_up),
		cmocka_unit_test(silence_in_down_forgets_the_neighbor_only),
		cmocka_unit_test(
			packets_of_forwarders_and_a_restart_move_the_detection_time),
		cmocka_unit_test(a_required_interval_of_0_of_ours_ends_detection),
		cmocka_unit_test(a_passive_session_is_silent_until_it_is_spoken_to),
		cmocka_unit_test(shutdown_tells_the_neighbor_for_a_detection_time),
		cmocka_unit_test(shutdown_without_a_neighbor_is_silent_at_once),
		cmocka_unit_test(after_no_shutdown_the_session_begins_again),
		cmocka_unit_test(
			in_admin_down_the_neighbor_is_forgotten_after_its_last_packet),
		cmocka_unit_test(admin_down_of_either_side_ends_a_failure),
		cmocka_unit_test(lost_echo_packets_are_a_failure_in_up_only),
		cmocka_unit_test(echo_packets_need_up_and_the_neighbors_leave),
		cmocka_unit_test(a_steady_session_ignores_exactly_the_expected_packet),
		cmocka_unit_test(
			a_session_is_not_steady_before_both_sides_are_up_and_polls_have_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
