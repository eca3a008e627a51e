/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buckets, shares and peers with a clock that the test sets.
 *
 * link: fpm-dataplane/base/
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <pthread.h>
#include <string.h>

#include "base/peers.h"
#include "base/policer.h"

#define HZ 2600000000ull
#define S  (HZ << POLICER_TICK_SHIFT) /* ticks per second */

/* A bucket: the time at which it is full, and its rate. */
struct one {
	_Atomic uint64_t full_at;
	struct bucket_rate rate;
};

static unsigned int
taken(struct one *b, uint64_t now, unsigned int wanted)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < wanted; i++)
		n += bucket_take(&b->full_at, &b->rate, now);
	return n;
}

static void
a_full_bucket_gives_its_burst_and_no_more(void **state)
{
	static const uint32_t burst[] = {1, 2, 63, 4096, 1000000};

	for (unsigned int i = 0; i < 5; i++) {
		struct one b = {0};

		bucket_rate_set(&b.rate, 1000, burst[i], S);
		assert_int_equal(taken(&b, 5 * S, burst[i] + 100), burst[i]);
		assert_false(bucket_has(&b.full_at, &b.rate, 5 * S));
		/* One packet every thousandth of a second. */
		assert_int_equal(taken(&b, 5 * S + S / 1000, 100), 1);
	}
}

static void
the_rate_is_exact_over_minutes(void **state)
{
	static const uint32_t rate[] = {1, 7, 100, 999, 50000};

	for (unsigned int i = 0; i < 5; i++) {
		struct one b = {0};
		uint64_t n = 0, seconds = 100, offered = (uint64_t)rate[i] * 3 + 1;

		bucket_rate_set(&b.rate, rate[i], 10, S);
		/* Packets arrive evenly at three times the rate. */
		for (uint64_t k = 0; k < seconds * offered; k++)
			n += bucket_take(&b.full_at, &b.rate, S + k * S / offered);
		assert_in_range(n, seconds * rate[i] + 8, seconds * rate[i] + 11);
	}
}

static void
packets_below_the_rate_always_pass(void **state)
{
	struct one b = {0};

	bucket_rate_set(&b.rate, 1000, 1, S);
	for (uint64_t k = 0; k < 100000; k++)
		assert_true(bucket_take(&b.full_at, &b.rate, S + k * (S / 1000 + 1)));
}

static void
the_highest_rate_is_within_a_promille(void **state)
{
	struct one b = {0};
	uint64_t n = 0;

	bucket_rate_set(&b.rate, POLICER_RATE_MAX, 100, S);
	for (uint64_t k = 0; k < 20000000; k++)
		n += bucket_take(&b.full_at, &b.rate, S + k * S / 20000000);
	assert_in_range(n, POLICER_RATE_MAX / 1000 * 999, POLICER_RATE_MAX / 1000 * 1001);
}

static void
a_long_idle_time_fills_the_bucket_once(void **state)
{
	/*
	 * A day, a quarter of the clock's range, a little more than half, and almost all of
	 * it.
	 */
	static const uint64_t idle[] = {86400 * S, 1ull << 62, (1ull << 63) + S,
					UINT64_MAX};

	for (unsigned int i = 0; i < 4; i++) {
		struct one b = {0};

		bucket_rate_set(&b.rate, 100, 50, S);
		assert_int_equal(taken(&b, 7, 100), 50);
		assert_int_equal(taken(&b, 7 + idle[i] - (i == 3 ? 10 * S : 0), 100), 50);
	}
}

static void
rate_0_is_closed_and_unlimited_is_open(void **state)
{
	struct one b = {0};

	bucket_rate_set(&b.rate, 0, 1000, S);
	assert_int_equal(taken(&b, 0, 100), 0);
	assert_int_equal(taken(&b, 1000 * S, 100), 0);
	assert_false(bucket_has(&b.full_at, &b.rate, 2000 * S));
	bucket_rate_set(&b.rate, POLICER_UNLIMITED, 1, S);
	assert_true(bucket_has(&b.full_at, &b.rate, 2000 * S));
	assert_int_equal(taken(&b, 2000 * S, 100000), 100000);
}

static void
a_faster_rate_does_not_wait_for_the_slower_one(void **state)
{
	struct one b = {0};

	bucket_rate_set(&b.rate, 1, 1000, S);
	assert_int_equal(taken(&b, S, 1000), 1000); /* in debt for 1000 seconds */
	bucket_rate_set(&b.rate, 1000, 10, S);
	assert_int_equal(taken(&b, S, 1000), 10);
}

static void
a_clock_a_little_behind_gets_no_extra_tokens(void **state)
{
	struct one b = {0};

	bucket_rate_set(&b.rate, 1000, 10, S);
	assert_int_equal(taken(&b, 5 * S, 10), 10);
	assert_int_equal(taken(&b, 5 * S - 1000, 10), 0);
	assert_int_equal(taken(&b, 5 * S - S / 2, 10), 0);
}

static struct one shared;
static pthread_barrier_t begin;

static void *
grab(void *n)
{
	pthread_barrier_wait(&begin);
	for (unsigned int round = 0; round < 1000; round++)
		*(unsigned int *)n += taken(&shared, S + round * (S / 1000), 20);
	return NULL;
}

static void
threads_together_get_the_rate_of_one(void **state)
{
	pthread_t thread[4];
	unsigned int n[4] = {0};

	bucket_rate_set(&shared.rate, 5000, 100, S);
	pthread_barrier_init(&begin, NULL, 4);
	for (unsigned int i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, grab, &n[i]);
	for (unsigned int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	/*
	 * The burst, and five packets per round. A thread that is behind has an older clock
	 * and gets no packet.
	 */
	assert_int_equal(n[0] + n[1] + n[2] + n[3], 100 + 999 * 5);
}

/* --- classes -------------------------------------------------------------------------- */

static void
set(enum punt_class class, uint32_t rate, uint32_t burst, uint32_t source_rate,
    uint32_t source_burst)
{
	struct policer_conf conf = {rate, burst, source_rate, source_burst};

	policer_set(class, &conf);
}

static void
one_source_has_its_share_and_the_others_the_rest(void **state)
{
	uint64_t now = 100 * S;

	policer_init(HZ, policer_default);
	set(CLASS_icmp, 100, 50, 10, 5);
	for (int i = 0; i < 5; i++)
		assert_int_equal(policer_take(CLASS_icmp, 1, now), POLICER_PASS);
	for (int i = 0; i < 100000; i++)
		assert_int_equal(policer_take(CLASS_icmp, 1, now), POLICER_SOURCE);
	for (int i = 0; i < 45; i++)
		assert_int_equal(policer_take(CLASS_icmp, 2 + (uint32_t)i / 5, now),
				 POLICER_PASS);
	assert_int_equal(policer_take(CLASS_icmp, 200, now), POLICER_RATE);
	/* A packet that the class refuses uses no token of its source. */
	set(CLASS_icmp, POLICER_UNLIMITED, 1, 10, 5);
	for (int i = 0; i < 5; i++)
		assert_int_equal(policer_take(CLASS_icmp, 200, now), POLICER_PASS);
	assert_int_equal(policer_take(CLASS_icmp, 200, now), POLICER_SOURCE);
}

static void
classes_do_not_share(void **state)
{
	uint64_t now = 1000 * S;

	policer_init(HZ, policer_default);
	set(CLASS_bgp_new, 0, 1, POLICER_UNLIMITED, 1);
	assert_int_equal(policer_take(CLASS_bgp_new, 1, now), POLICER_RATE);
	assert_int_equal(policer_take(CLASS_bgp, 1, now), POLICER_PASS);
}

static void
classes_have_names_and_sane_defaults(void **state)
{
	for (unsigned int c = 0; c < N_PUNT_CLASS; c++) {
		const struct policer_conf *conf = &policer_default[c];

		assert_int_equal(punt_class_find(punt_class_info[c].name), c);
		assert_in_range(conf->rate, 100, 100000);
		assert_in_range(conf->burst, 100, 10000);
		/* No single source may fill a class. */
		assert_in_range(conf->source_rate, 1, conf->rate / 2);
		assert_in_range(conf->source_burst, 1, conf->burst / 2);
	}
	assert_int_equal(punt_class_find("no-such"), N_PUNT_CLASS);
	assert_int_equal(punt_class_find(""), N_PUNT_CLASS);
}

static void
ticks_are_seconds(void **state)
{
	policer_init(HZ, policer_default);
	assert_int_equal(policer_seconds(0), 0);
	assert_int_equal(policer_seconds(S - 1), 0);
	assert_int_equal(policer_seconds(86400 * S), 86400);
}

/* --- peers ---------------------------------------------------------------------------- */

static const uint8_t a4[4] = {192, 0, 2, 1}, b4[4] = {192, 0, 2, 2};

static uint64_t
key_n(uint64_t n)
{
	uint8_t addr[16] = {0x20, 0x01};

	memcpy(addr + 8, &n, sizeof(n));
	return peer_addr_key(addr, 6, 0, 99);
}

static void
a_peer_is_known_until_it_is_forgotten_or_old(void **state)
{
	uint64_t key = peer_addr_key(a4, 4, 0, 1);

	assert_false(peers_know(PEER_BFD, key, 50));
	peers_learn(PEER_BFD, key, true, 50);
	assert_true(peers_know(PEER_BFD, key, 50));
	assert_true(peers_know(PEER_BFD, key, 49));  /* a core whose clock is behind */
	assert_false(peers_know(PEER_BFD, key, 48)); /* the clock went back */
	assert_true(peers_know(PEER_BFD, key, 50 + PEER_SECONDS - 1));
	assert_false(peers_know(PEER_BFD, key, 50 + PEER_SECONDS));
	peers_learn(PEER_BFD, key, true, 70);
	assert_true(peers_know(PEER_BFD, key, 50 + PEER_SECONDS));
	peers_forget(PEER_BFD, key);
	assert_false(peers_know(PEER_BFD, key, 71));
	assert_false(peers_know(PEER_CONTROL, key, 71)); /* each kind has its own table */
}

static void
keys_differ_in_everything(void **state)
{
	uint64_t key = peer_tcp_key(a4, b4, 4, 179, 40000, 1);

	assert_int_not_equal(key, peer_tcp_key(b4, a4, 4, 179, 40000, 1));
	assert_int_not_equal(key, peer_tcp_key(a4, b4, 4, 40000, 179, 1));
	assert_int_not_equal(key, peer_tcp_key(a4, b4, 4, 179, 40001, 1));
	assert_int_not_equal(key, peer_tcp_key(a4, b4, 4, 179, 40000, 2));
	assert_int_not_equal(peer_addr_key(a4, 4, 89, 1), peer_addr_key(a4, 4, 88, 1));
	assert_int_not_equal(peer_addr_key(a4, 4, 0, 1), peer_addr_key(b4, 4, 0, 1));
}

static void
the_unproved_never_displace_the_proved(void **state)
{
	unsigned int known = 0;

	for (uint64_t n = 0; n < 500; n++)
		peers_learn(PEER_BGP, key_n(n), true, 1000);
	/* A botnet with real connections: a hundred times the size of the table. */
	for (uint64_t n = 1000; n < 400000; n++)
		peers_learn(PEER_BGP, key_n(n), false, 1100);
	for (uint64_t n = 0; n < 500; n++)
		known += peers_know(PEER_BGP, key_n(n), 1100);
	/*
	 * One peer may be lost, because five of the 500 may be in one set of four. This is
	 * rare.
	 */
	assert_in_range(known, 499, 500);
	/* New peers take the places of peers that have expired. */
	peers_learn(PEER_BGP, key_n(500000), false, 1000 + PEER_SECONDS);
	assert_true(peers_know(PEER_BGP, key_n(500000), 1000 + PEER_SECONDS));
}

static void
peers_in_use_outlive_others(void **state)
{
	unsigned int known = 0;

	for (uint32_t now = 1; now < 200; now++) {
		for (uint64_t n = 0; n < 200; n++)
			peers_learn(PEER_ASKED, key_n(n), true, now);
		for (uint64_t n = 0; n < 1000; n++)
			peers_learn(PEER_ASKED, key_n((uint64_t)now * 10000 + n), true,
				    now);
	}
	for (uint64_t n = 0; n < 200; n++)
		known += peers_know(PEER_ASKED, key_n(n), 200);
	assert_in_range(known, 190, 200);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_bucket_gives_its_burst_and_no_more),
		cmocka_unit_test(the_rate_is_exact_over_minutes),
		cmocka_unit_test(packets_below_the_rate_always_pass),
		cmocka_unit_test(the_highest_rate_is_within_a_promille),
		cmocka_unit_test(a_long_idle_time_fills_the_bucket_once),
		cmocka_unit_test(rate_0_is_closed_and_unlimited_is_open),
		cmocka_unit_test(a_faster_rate_does_not_wait_for_the_slower_one),
		cmocka_unit_test(a_clock_a_little_behind_gets_no_extra_tokens),
		cmocka_unit_test(threads_together_get_the_rate_of_one),
		cmocka_unit_test(one_source_has_its_share_and_the_others_the_rest),
		cmocka_unit_test(classes_do_not_share),
		cmocka_unit_test(classes_have_names_and_sane_defaults),
		cmocka_unit_test(ticks_are_seconds),
		cmocka_unit_test(a_peer_is_known_until_it_is_forgotten_or_old),
		cmocka_unit_test(keys_differ_in_everything),
		cmocka_unit_test(the_unproved_never_displace_the_proved),
		cmocka_unit_test(peers_in_use_outlive_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
