/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Samples of sFlow in a forwarder: the distance from one sample to the next, the frames
 * that are chosen, a full ring, dropped packets. The seed is printed.
 *
 * link: fpm-dataplane/fwd/ fpm-dataplane/fib/ fpm-dataplane/base/ fpm-dataplane/port/watch.c
 * link: fpm-dataplane/ruleset/
 * link: fpm-dataplane/port/rxq.c
 * link: poptrie/
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <urcu/urcu-qsbr.h>

#include "fwd/sample.h"

#define PORT  3
#define BYTES 80

static struct fwd fwd;
static struct fwd_conf conf;
static struct burst burst;
static struct counters count;
static struct watch_set set;
static struct watch *watch;
static struct rte_mbuf mbuf[BURST_MAX];
static uint8_t memory[BURST_MAX][BYTES];

static int
up(void **state)
{
	struct fib *fib;

	urcu_qsbr_register_thread();
	assert_int_equal(fib_create(&fib, &(struct fib_conf){0}), 0);
	watch = watch_create();
	conf = (struct fwd_conf){.sample_ring = watch_ring_add(watch, NULL)};
	set = (struct watch_set){.epoch = 1, .sample_rate = 1, .sample_bytes = 64};
	memset(&count, 0, sizeof(count));
	memset(&fwd, 0, sizeof(fwd));
	fwd.conf = &conf;
	fwd.fib = fib;
	fwd.count = &count;
	fwd.sample = &set;
	burst = (struct burst){.fwd = &fwd, .ifidx = PORT, .n = BURST_MAX};
	for (unsigned int i = 0; i < BURST_MAX; i++) {
		memset(memory[i], (int)i, BYTES);
		mbuf[i] = (struct rte_mbuf){
			.buf_addr = memory[i], .data_len = BYTES, .pkt_len = BYTES};
		burst.m[i] = &mbuf[i];
		burst.verdict[i] = DROP_blackhole;
	}
	return 0;
}

static int
down(void **state)
{
	watch_free(watch);
	fib_destroy(fwd.fib);
	urcu_qsbr_unregister_thread();
	return 0;
}

static void
ring_empty(void)
{
	conf.sample_ring->tail = conf.sample_ring->head;
}

/* Pass a burst of `n` packets. Return the number of its samples. */
static unsigned int
pass(uint16_t n)
{
	uint64_t before = conf.sample_ring->head;

	burst.n = n;
	if (fwd_sample(&burst))
		fwd_sample_note(&burst);
	assert_int_equal(fwd.n_sampled, 0);
	return (unsigned int)(conf.sample_ring->head - before);
}

/*
 * The distances are uniform between 1 and 2N-1: their variance is (N^2 - N) / 3, so the
 * number of samples of n packets has the variance n (N - 1) / (3 N^2). The limit is five
 * deviations.
 */
static void
one_of_n_packets_is_a_sample(void **state)
{
	static const uint32_t rates[] = {1, 2, 3, 10, 1000};

	for (unsigned int r = 0; r < sizeof(rates) / sizeof(rates[0]); r++) {
		double rate = rates[r], n = 0, seen = 0, variance, off;

		set.sample_rate = rates[r];
		set.epoch++;
		fwd_sample_begin(&fwd);
		while (n < 3000 * rate) {
			uint16_t len = (uint16_t)(1 + random() % BURST_MAX);

			seen += pass(len);
			n += len;
			ring_empty();
		}
		variance = n * (rate - 1) / (3 * rate * rate);
		off = seen - n / rate;
		if (off * off > 25 * variance + 1)
			fail_msg("1:%g: %g samples of %g packets", rate, seen, n);
	}
}

static void
each_place_in_a_burst_is_as_likely(void **state)
{
	unsigned int at[BURST_MAX] = {0}, n = 0;

	set.sample_rate = 50;
	fwd_sample_begin(&fwd);
	for (; n < 64000; ring_empty())
		for (uint64_t k = conf.sample_ring->head, end = k + pass(BURST_MAX);
		     k < end; k++, n++)
			at[conf.sample_ring->record[k % WATCH_RING_SLOTS].frame[0]]++;
	for (unsigned int i = 0; i < BURST_MAX; i++)
		if (at[i] < 800 || at[i] > 1200) /* 1000, and six deviations */
			fail_msg("packet %u of a burst: %u of %u samples", i, at[i], n);
}

static void
a_record_has_the_port_the_verdict_and_the_first_octets(void **state)
{
	const struct watch_record *rec = conf.sample_ring->record;

	fwd_sample_begin(&fwd);
	assert_int_equal(pass(2), 2);
	assert_int_equal(rec[1].in_ifidx, PORT);
	assert_int_equal(rec[1].epoch, set.epoch);
	assert_int_equal(rec[1].point, WATCH_WALK);
	assert_int_equal(rec[1].verdict, DROP_blackhole);
	assert_int_equal(rec[1].frame_bytes, BYTES);
	assert_int_equal(rec[1].snap_bytes, 64);
	assert_memory_equal(rec[1].frame, memory[1], 64);
}

static void
a_full_ring_loses_the_record_and_counts_it_for_the_port(void **state)
{
	unsigned int n = 0;

	fwd_sample_begin(&fwd);
	for (unsigned int i = 0; i < WATCH_RING_SLOTS / BURST_MAX + 2; i++)
		n += pass(BURST_MAX);
	assert_int_equal(n, WATCH_RING_SLOTS);
	assert_int_equal(count.sample_lost[PORT], 2 * BURST_MAX);
	ring_empty();
	assert_int_equal(pass(BURST_MAX), BURST_MAX);
}

static void
without_sflow_nothing_is_counted(void **state)
{
	fwd.sample = NULL;
	assert_int_equal(pass(BURST_MAX), 0);
	assert_false(fwd_samples_drops(&fwd));
}

/* At most 64 dropped packets wait in the ring, so that samples still have room. */
static void
dropped_packets_are_recorded_up_to_a_limit(void **state)
{
	const struct watch_record *rec = conf.sample_ring->record;

	assert_false(fwd_samples_drops(&fwd));
	set.sample_drops = true;
	assert_true(fwd_samples_drops(&fwd));
	for (unsigned int i = 0; i < 100; i++)
		fwd_sample_drop(&burst, i % BURST_MAX, DROP_ttl);
	assert_int_equal(conf.sample_ring->head, 64);
	assert_int_equal(count.discard_lost[PORT], 36);
	assert_int_equal(rec[63].point, WATCH_LOST);
	assert_int_equal(rec[63].verdict, DROP_ttl);
	assert_int_equal(rec[63].in_ifidx, PORT);
	fwd_sample_begin(&fwd);
	assert_int_equal(pass(10), 10);
	ring_empty();
	fwd_sample_unsent(&fwd, PORT, PORT, &mbuf[0]);
	assert_int_equal(rec[74].verdict, DROP_tx_full);
	assert_int_equal(rec[74].out_ifidx, PORT);
	assert_int_equal(conf.sample_ring->head, 75);
}

/*
 * Samples that wait do not count against the limit of dropped packets. A record of a
 * dropped packet that was read makes room.
 */
static void
samples_do_not_count_as_dropped_packets(void **state)
{
	struct watch_ring *ring = conf.sample_ring;

	set.sample_drops = true;
	fwd_sample_begin(&fwd);
	assert_int_equal(pass(BURST_MAX), BURST_MAX);
	assert_int_equal(pass(BURST_MAX), BURST_MAX);
	for (unsigned int i = 0; i < 65; i++)
		fwd_sample_drop(&burst, 0, DROP_ttl);
	assert_int_equal(ring->head, 2 * BURST_MAX + 64);
	assert_int_equal(count.discard_lost[PORT], 1);
	ring->tail = 2 * BURST_MAX + 3;
	for (unsigned int i = 0; i < 4; i++)
		fwd_sample_drop(&burst, 0, DROP_ttl);
	assert_int_equal(ring->head, 2 * BURST_MAX + 64 + 3);
	assert_int_equal(count.discard_lost[PORT], 2);
}

/*
 * The packets of a received burst pass in parts, by interface. A packet that is dropped in
 * the first part does not publish the records of the other parts, which are not complete
 * yet.
 */
static void
records_are_shown_when_all_parts_have_passed(void **state)
{
	struct rte_mbuf *m[2] = {burst.m[0], burst.m[1]};

	set.sample_drops = true;
	fwd_sample_begin(&fwd);
	burst.n = 2;
	assert_true(fwd_sample(&burst));
	burst.n = 1;
	burst.m[0] = m[1];
	fwd_sample_note(&burst);
	fwd_sample_drop(&burst, 0, DROP_blackhole);
	assert_int_equal(fwd.n_sampled, 1);
	assert_int_equal(conf.sample_ring->head, 0);
	burst.m[0] = m[0];
	fwd_sample_note(&burst);
	assert_int_equal(conf.sample_ring->head, 3);
	burst.m[1] = m[1];
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_of_n_packets_is_a_sample, up, down),
		cmocka_unit_test_setup_teardown(each_place_in_a_burst_is_as_likely, up,
						down),
		cmocka_unit_test_setup_teardown(
			a_record_has_the_port_the_verdict_and_the_first_octets, up, down),
		cmocka_unit_test_setup_teardown(
			a_full_ring_loses_the_record_and_counts_it_for_the_port, up, down),
		cmocka_unit_test_setup_teardown(without_sflow_nothing_is_counted, up, down),
		cmocka_unit_test_setup_teardown(dropped_packets_are_recorded_up_to_a_limit,
						up, down),
		cmocka_unit_test_setup_teardown(samples_do_not_count_as_dropped_packets, up,
						down),
		cmocka_unit_test_setup_teardown(
			records_are_shown_when_all_parts_have_passed, up, down),
	};
	unsigned int seed = getenv("SEED") != NULL ? (unsigned int)atoi(getenv("SEED"))
						   : (unsigned int)rte_rdtsc();

	print_message("SEED=%u\n", seed);
	srandom(seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
