/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two BFD sessions that talk over a link of the test. The link loses, delays and reorders
 * packets; changes of timers, restarts and shutdowns are random. The test sets the time.
 * After every event the claims of check() hold. They are computed from the packets that the
 * link delivered and from the configuration, not from the fields of the session.
 *
 * link: fpm-dataplane/bfd/fsm.c fpm-dataplane/bfd/packet.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bfd/fsm.h"

#define US      1000ull
#define MS      (1000 * US)
#define S       (1000 * MS)
#define T0      (50 * S)
#define FLIGHTS 64u

/* One end of the link, as the thread that runs sessions would keep it. */
struct party {
	struct bfd_fsm f;
	uint64_t sent_at, send_at; /* last periodic packet, and the next */

	/* Facts that the test knows by itself. */
	uint64_t heard_at;    /* the last packet delivered */
	uint32_t heard_tx_us; /* that packet's interval, and its multiplier */
	uint8_t heard_mult;
	uint32_t polled_us; /* the required interval in our last Poll */
	uint32_t agreed_us; /* our required interval that the neighbor knows */
	bool was_up;        /* Up since the session was created */
	bool excused;       /* since it was Up, a side was AdminDown */
	unsigned int n_ups, n_failures, n_polls_ended;
};

struct flight {
	uint64_t at; /* 0: free */
	unsigned int to;
	uint8_t wire[BFD_PACKET_BYTES];
};

struct link {
	struct party party[2];
	struct flight flight[FLIGHTS];
	uint64_t now;
	uint64_t seed;
	uint64_t delay, delay_more; /* of a packet: delay to delay + delay_more */
	unsigned int lost[2];       /* packets of a thousand that are lost, to each side */
	uint32_t next_discr;
	uint64_t n_sent, n_lost;
};

static uint32_t
chance(struct link *l)
{
	l->seed = l->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(l->seed >> 32);
}

/*
 * --- the steps that thread bfd makes
 * ------------------------------------------------------------
 */

static void
transmit(struct link *l, unsigned int from, bool final)
{
	struct party *p = &l->party[from];
	uint8_t wire[BFD_PACKET_BYTES];
	struct bfd_packet packet;

	bfd_fsm_packet(&p->f, final, wire);
	assert_int_equal(bfd_packet_read(&packet, wire, sizeof(wire)), BFD_PACKET_OK);
	assert_false(packet.poll && packet.final);
	assert_int_equal(packet.final, final);
	/* 6.8.3: slow unless Up. A passive session does not speak first: 6.1. */
	assert_true(packet.state == BFD_UP || packet.min_tx_us >= BFD_SLOW_US);
	assert_true(!p->f.conf.passive || packet.your_discr != 0);
	assert_true(packet.state != BFD_ADMIN_DOWN || l->now <= p->f.silent_at);
	if (packet.poll)
		p->polled_us = packet.min_rx_us;
	l->n_sent++;
	if (chance(l) % 1000 < l->lost[!from]) {
		l->n_lost++;
		return;
	}
	for (unsigned int i = 0; i < FLIGHTS; i++) {
		struct flight *f = &l->flight[i];

		if (f->at != 0)
			continue;
		f->at = l->now + l->delay + (l->delay_more ? chance(l) % l->delay_more : 0);
		f->to = !from;
		memcpy(f->wire, wire, sizeof(wire));
		return;
	}
	fail_msg("more packets in flight than expected");
}

/* Return the time of the next periodic packet after the last one. */
static uint64_t
next_at(struct link *l, const struct party *p)
{
	uint32_t us = bfd_fsm_tx_us(&p->f);

	if (us == 0)
		return BFD_NEVER;
	return p->sent_at + bfd_jitter_us(us, p->f.conf.mult, chance(l)) * US;
}

static void
send_periodic(struct link *l, unsigned int from)
{
	struct party *p = &l->party[from];

	if (l->now >= p->f.silent_at) {
		p->send_at = BFD_NEVER;
		return;
	}
	transmit(l, from, false);
	p->sent_at = l->now;
	p->send_at = next_at(l, p);
}

static void
obey(struct link *l, unsigned int who, unsigned int acts)
{
	struct party *p = &l->party[who];

	if (acts & BFD_ACT_FINAL)
		transmit(l, who, true);
	if (acts & BFD_ACT_POLL_ENDED)
		p->n_polls_ended++;
	if (acts & BFD_ACT_SEND) {
		send_periodic(l, who);
	} else if (acts & BFD_ACT_TX) {
		uint64_t at = next_at(l, p);

		if (at < l->now)
			at = l->now;
		if (at < p->send_at || at == BFD_NEVER)
			p->send_at = at;
	}
}

/* --- claims --------------------------------------------------------------------------- */

/* Check `who`: its state was `before`, and `acts` are the actions of the change. */
static void
check(struct link *l, unsigned int who, const struct bfd_fsm *before, unsigned int acts)
{
	struct party *p = &l->party[who];
	const struct bfd_fsm *f = &p->f;

	assert_int_equal((acts & BFD_ACT_STATE) != 0, f->state != before->state);
	assert_int_equal((acts & BFD_ACT_TX) != 0,
			 bfd_fsm_tx_us(f) != bfd_fsm_tx_us(before));
	assert_int_equal((acts & BFD_ACT_DETECT) != 0,
			 bfd_fsm_detect_us(f) != bfd_fsm_detect_us(before));
	if (before->state != f->state) {
		assert_int_equal(f->state_at, l->now);
		if (f->state == BFD_UP) {
			p->n_ups++;
			p->was_up = true;
			p->excused = false;
		}
		if (f->state == BFD_ADMIN_DOWN || f->remote_state == BFD_ADMIN_DOWN)
			p->excused = true;
		if (f->state == BFD_DOWN && f->diag == BFD_DIAG_EXPIRED) {
			uint64_t least = p->heard_mult * US *
					 (p->heard_tx_us > p->agreed_us ? p->heard_tx_us
									: p->agreed_us);

			if (l->now < p->heard_at + least)
				fail_msg("Down after %llu us of silence, not %llu",
					 (unsigned long long)(l->now - p->heard_at) / US,
					 (unsigned long long)least / US);
		}
		if (before->state == BFD_UP && bfd_fsm_is_failed(f))
			p->n_failures++;
	}
	if (f->remote_state == BFD_ADMIN_DOWN && before->remote_state != BFD_ADMIN_DOWN)
		p->excused = true;
	if (f->state != BFD_UP)
		p->agreed_us = f->conf.min_rx_us;
	assert_int_equal(f->was_up, p->was_up);
	if (!p->was_up || p->excused || f->state == BFD_UP)
		assert_false(bfd_fsm_is_failed(f));
	else if (f->state == BFD_DOWN)
		assert_true(bfd_fsm_is_failed(f));
	assert_int_equal(f->n_downs >= p->n_failures, true);
	assert_int_equal(f->silent_at == BFD_NEVER, f->state != BFD_ADMIN_DOWN);
}

/* --- events --------------------------------------------------------------------------- */

static void
begin(struct link *l, unsigned int who, const struct bfd_conf *conf)
{
	struct party *p = &l->party[who];

	memset(p, 0, sizeof(*p));
	bfd_fsm_begin(&p->f, ++l->next_discr, conf, l->now);
	p->agreed_us = conf->min_rx_us;
	p->excused = true;
	p->sent_at = l->now;
	p->send_at = bfd_fsm_tx_us(&p->f) == 0 ? BFD_NEVER : l->now + chance(l) % S;
}

static void
configure(struct link *l, unsigned int who, const struct bfd_conf *conf)
{
	struct party *p = &l->party[who];
	struct bfd_fsm before = p->f;
	unsigned int acts = bfd_fsm_configure(&p->f, conf, l->now);

	check(l, who, &before, acts);
	obey(l, who, acts);
}

static void
deliver(struct link *l, struct flight *flight)
{
	struct party *p = &l->party[flight->to];
	unsigned int who = flight->to, acts;
	struct bfd_fsm before = p->f;
	uint8_t expect[BFD_PACKET_BYTES];
	struct bfd_packet packet;
	bool same;

	flight->at = 0;
	same = bfd_fsm_is_steady(&p->f, expect) && memcmp(expect, flight->wire, 24) == 0;
	assert_int_equal(bfd_packet_read(&packet, flight->wire, 24), BFD_PACKET_OK);
	acts = bfd_fsm_receive(&p->f, &packet, l->now);
	if (same)
		assert_int_equal(acts, 0);
	if (acts & BFD_ACT_FOREIGN) {
		assert_int_equal(acts, BFD_ACT_FOREIGN);
		assert_memory_equal(&before, &p->f, sizeof(before));
		return;
	}
	p->heard_at = l->now;
	p->heard_mult = packet.mult;
	p->heard_tx_us = packet.min_tx_us;
	/* A shorter required interval may be used after a Final only. */
	if (packet.final)
		p->agreed_us = p->polled_us;
	check(l, who, &before, acts);
	obey(l, who, acts);
}

static void
expire(struct link *l, unsigned int who)
{
	struct party *p = &l->party[who];
	struct bfd_fsm before = p->f;
	unsigned int acts = bfd_fsm_expired(&p->f, l->now);

	assert_true(acts & BFD_ACT_REMOTE);
	check(l, who, &before, acts);
	obey(l, who, acts);
}

static void
run_until(struct link *l, uint64_t until)
{
	for (;;) {
		uint64_t at = until;
		struct flight *flight = NULL;
		unsigned int who = 0;
		enum { NONE, DELIVER, SEND, EXPIRE } what = NONE;

		for (unsigned int i = 0; i < FLIGHTS; i++) {
			if (l->flight[i].at != 0 && l->flight[i].at < at) {
				at = l->flight[i].at;
				flight = &l->flight[i];
				what = DELIVER;
			}
		}
		for (unsigned int i = 0; i < 2; i++) {
			if (l->party[i].send_at < at) {
				at = l->party[i].send_at;
				who = i;
				what = SEND;
			}
			if (bfd_fsm_expire_at(&l->party[i].f) < at) {
				at = bfd_fsm_expire_at(&l->party[i].f);
				who = i;
				what = EXPIRE;
			}
		}
		if (at > l->now)
			l->now = at;
		if (what == NONE)
			return;
		if (what == DELIVER)
			deliver(l, flight);
		else if (what == SEND)
			send_periodic(l, who);
		else
			expire(l, who);
	}
}

static bool
both(const struct link *l, enum bfd_state state)
{
	return l->party[0].f.state == state && l->party[1].f.state == state;
}

static void
begin_link(struct link *l, uint64_t seed, const struct bfd_conf *a,
	   const struct bfd_conf *b)
{
	memset(l, 0, sizeof(*l));
	l->seed = seed * 0x9e3779b97f4a7c15ull + 1;
	l->now = T0;
	l->delay = 2 * MS;
	begin(l, 0, a);
	begin(l, 1, b);
}

static const struct bfd_conf fast = {.min_tx_us = 10000, .min_rx_us = 10000, .mult = 3};

static struct bfd_conf
random_conf(struct link *l)
{
	static const uint32_t us[] = {10000, 10000, 20000, 50000, 300000, 1000000, 2000000};

	return (struct bfd_conf){
		.min_tx_us = us[chance(l) % 7],
		.min_rx_us = us[chance(l) % 7],
		.mult = (uint8_t)(1 + chance(l) % 5),
	};
}

/* --- tests ---------------------------------------------------------------------------- */

static void
both_sides_come_up(void **state)
{
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct bfd_conf a, b;
		struct link l;

		begin_link(&l, seed, &fast, &fast);
		a = random_conf(&l);
		b = random_conf(&l);
		a.passive = seed % 3 == 0;
		begin_link(&l, seed, &a, &b);
		/* Slow start: a packet each second or two, three of them are enough. */
		run_until(&l, T0 + 8 * S);
		assert_true(both(&l, BFD_UP));
		run_until(&l, T0 + 30 * S);
		for (unsigned int i = 0; i < 2; i++) {
			assert_int_equal(l.party[i].n_ups, 1);
			assert_int_equal(l.party[i].f.n_downs, 0);
			assert_false(l.party[i].f.polling);
		}
	}
}

static void
two_passive_sides_never_speak(void **state)
{
	struct bfd_conf passive = fast;
	struct link l;

	passive.passive = true;
	begin_link(&l, 1, &passive, &passive);
	run_until(&l, T0 + 100 * S);
	assert_true(both(&l, BFD_DOWN));
	assert_int_equal(l.n_sent, 0);
}

static void
timers_change_without_a_down(void **state)
{
	uint64_t n_polls = 0;

	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct link l;

		begin_link(&l, seed, &fast, &fast);
		/* Packets that follow each other closely are reordered. */
		l.delay_more = seed & 1 ? 500 * US : 0;
		run_until(&l, T0 + 8 * S);
		assert_true(both(&l, BFD_UP));
		for (unsigned int n = 0; n < 40; n++) {
			struct bfd_conf conf = random_conf(&l);

			/*
			 * A packet that was overtaken counts as the newest packet. With a
			 * multiplier of 1 it could end the session.
			 */
			if (l.delay_more != 0 && conf.mult == 1)
				conf.mult = 2;
			configure(&l, chance(&l) & 1, &conf);
			run_until(&l, l.now + chance(&l) % (3000 * MS));
			assert_true(both(&l, BFD_UP));
		}
		/* In the end both use their configuration. */
		run_until(&l, l.now + 30 * S);
		for (unsigned int i = 0; i < 2; i++) {
			const struct bfd_fsm *f = &l.party[i].f, *g = &l.party[!i].f;
			uint8_t expect[BFD_PACKET_BYTES];
			uint32_t us = f->conf.min_tx_us > g->conf.min_rx_us
					      ? f->conf.min_tx_us
					      : g->conf.min_rx_us;

			assert_int_equal(f->n_downs, 0);
			assert_true(bfd_fsm_is_steady(f, expect));
			assert_int_equal(bfd_fsm_tx_us(f), us);
			assert_int_equal(bfd_fsm_detect_us(g), (uint64_t)f->conf.mult * us);
			n_polls += l.party[i].n_polls_ended;
		}
	}
	/* Changes do come one by one, not all in one sequence at the end. */
	assert_true(n_polls > 200 * 10);
}

static void
a_cut_is_detected_in_time_and_not_before(void **state)
{
	for (uint64_t seed = 1; seed <= 200; seed++) {
		unsigned int lost_to = seed % 3; /* to 0, to 1, to both */
		struct link l;

		begin_link(&l, seed, &fast, &fast);
		run_until(&l, T0 + 8 * S + chance(&l) % S);
		assert_true(both(&l, BFD_UP));
		for (unsigned int i = 0; i < 2; i++)
			if (lost_to == i || lost_to == 2)
				l.lost[i] = 1000;
		/*
		 * Less than two of three intervals have passed. A packet in transit still
		 * arrives.
		 */
		run_until(&l, l.now + 19 * MS);
		assert_true(both(&l, BFD_UP));
		run_until(&l, l.now + 15 * MS);
		assert_true(both(&l, BFD_DOWN) || lost_to != 2);
		assert_int_not_equal(l.party[lost_to % 2].f.state, BFD_UP);
		assert_int_equal(l.party[lost_to % 2].f.down_diag, BFD_DIAG_EXPIRED);
		assert_true(bfd_fsm_is_failed(&l.party[lost_to % 2].f));
		if (lost_to != 2) {
			/* The other side receives the state. */
			assert_int_equal(l.party[!lost_to].f.down_diag,
					 BFD_DIAG_NEIGHBOR_DOWN);
			assert_true(bfd_fsm_is_failed(&l.party[!lost_to].f));
		}
		l.lost[0] = l.lost[1] = 0;
		run_until(&l, l.now + 8 * S);
		assert_true(both(&l, BFD_UP));
		assert_int_equal(l.party[0].n_ups, 2);
		assert_int_equal(l.party[1].n_ups, 2);
	}
}

static void
shutdown_is_no_failure_on_either_side(void **state)
{
	for (uint64_t seed = 1; seed <= 200; seed++) {
		unsigned int who = seed & 1;
		struct bfd_conf conf = fast;
		uint64_t n_sent;
		struct link l;

		begin_link(&l, seed, &fast, &fast);
		run_until(&l, T0 + 8 * S);
		assert_true(both(&l, BFD_UP));
		conf.shutdown = true;
		configure(&l, who, &conf);
		run_until(&l, l.now + 5 * MS);
		assert_int_equal(l.party[who].f.state, BFD_ADMIN_DOWN);
		assert_int_equal(l.party[!who].f.state, BFD_DOWN);
		assert_int_equal(l.party[!who].f.diag, BFD_DIAG_NEIGHBOR_DOWN);
		run_until(&l, l.now + 20 * S);
		/* By now only the other side sends packets. */
		n_sent = l.n_sent;
		assert_true(l.party[who].send_at == BFD_NEVER);
		run_until(&l, l.now + 10 * S);
		assert_true(l.n_sent >= n_sent + 9 && l.n_sent <= n_sent + 15);
		conf.shutdown = false;
		configure(&l, who, &conf);
		run_until(&l, l.now + 8 * S);
		assert_true(both(&l, BFD_UP));
		assert_int_equal(l.party[0].n_failures + l.party[1].n_failures, 0);
	}
}

static void
a_restarted_side_comes_up_again(void **state)
{
	for (uint64_t seed = 1; seed <= 200; seed++) {
		unsigned int who = seed & 1;
		struct link l;

		begin_link(&l, seed, &fast, &fast);
		run_until(&l, T0 + 8 * S);
		begin(&l, who, &fast);
		run_until(&l, l.now + 8 * S);
		assert_true(both(&l, BFD_UP));
		assert_int_equal(l.party[!who].n_ups, 2);
		assert_int_equal(l.party[!who].f.your_discr, l.party[who].f.my_discr);
	}
}

/* Mix all events. check() has the claims. At the end the link loses no packet. */
static void
chaos_ends_with_both_up(void **state)
{
	unsigned int n_downs = 0;

	for (uint64_t seed = 1; seed <= 300; seed++) {
		struct link l;

		begin_link(&l, seed, &fast, &fast);
		for (unsigned int n = 0; n < 60; n++) {
			unsigned int who = chance(&l) & 1;
			struct bfd_conf conf = l.party[who].f.conf;

			switch (chance(&l) % 8) {
			case 0:
			case 1:
				conf = random_conf(&l);
				configure(&l, who, &conf);
				break;
			case 2:
				conf.shutdown = !conf.shutdown;
				configure(&l, who, &conf);
				break;
			case 3:
				conf.passive =
					!conf.passive && !l.party[!who].f.conf.passive;
				configure(&l, who, &conf);
				break;
			case 4:
				l.lost[who] = chance(&l) % 1001;
				break;
			case 5:
				l.lost[0] = l.lost[1] = 0;
				break;
			case 6:
				l.delay_more = chance(&l) % (30 * MS);
				break;
			default:
				if (chance(&l) % 4 == 0)
					begin(&l, who, &conf);
				break;
			}
			run_until(&l, l.now + chance(&l) % (4000 * MS));
		}
		n_downs += l.party[0].f.n_downs + l.party[1].f.n_downs;
		l.lost[0] = l.lost[1] = 0;
		l.delay_more = 0;
		configure(&l, 0, &fast);
		configure(&l, 1, &fast);
		/* The longest detection time before was 5 times 2 s. */
		run_until(&l, l.now + 30 * S);
		assert_true(both(&l, BFD_UP));
		for (unsigned int i = 0; i < 2; i++) {
			assert_int_equal(bfd_fsm_tx_us(&l.party[i].f), 10000);
			assert_int_equal(bfd_fsm_detect_us(&l.party[i].f), 30000);
		}
	}
	assert_true(n_downs > 300);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_sides_come_up),
		cmocka_unit_test(two_passive_sides_never_speak),
		cmocka_unit_test(timers_change_without_a_down),
		cmocka_unit_test(a_cut_is_detected_in_time_and_not_before),
		cmocka_unit_test(shutdown_is_no_failure_on_either_side),
		cmocka_unit_test(a_restarted_side_comes_up_again),
		cmocka_unit_test(chaos_ends_with_both_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
