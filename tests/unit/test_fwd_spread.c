/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All packets of a burst are sent: each one reaches the buffer of its interface, in order.
 * Vector and scalar code give the same result. A packet is counted for its VLAN whatever
 * else is in the buffer. The seed is printed.
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
#include <unistd.h>

#include <rte_ethdev.h>

#include "fwd/fast.h"
#include "fwd/tx.h"
#include "fwd_isas.h"

#define ROUNDS     20000
#define PORTS      20 /* interfaces 1 to 20 */
#define FIRST_PORT 10 /* interface n has DPDK port FIRST_PORT + n */

static struct fib_iface iface[PORTS + 1];
static struct rte_mbuf mbuf[BURST_MAX]; /* only their addresses are used */
static struct fwd fwd;
static struct burst burst;

static unsigned int
below(unsigned int n)
{
	return (unsigned int)random() % n;
}

/* Call the function that is tested. */
static uint64_t
spread(struct burst *b)
{
	return fwd_uses_avx512() ? fwd_spread_avx512(b)
	       : fwd_uses_avx2() ? fwd_spread_avx2(b)
				 : fwd_spread_sse4(b);
}

/* Skip with the scalar code and with NEON, which have no such function. */
static void
skip_without_vectors(void)
{
	if (fwd_uses_avx512() || fwd_uses_avx2() || fwd_uses_sse4())
		return;
	print_message("skipped: this CPU is no x86-64\n");
	skip();
}

/* Make a burst. Count its packets by interface. Return the number of interfaces. */
static unsigned int
burst_make(unsigned int count[PORTS + 1])
{
	unsigned int ports = 1 + below(below(2) ? 4 : PORTS), n_ports = 0;

	memset(count, 0, (PORTS + 1) * sizeof(count[0]));
	burst.fwd = &fwd;
	burst.n = (uint16_t)(1 + below(BURST_MAX));
	for (unsigned int i = 0; i < BURST_MAX; i++) {
		unsigned int ifidx = 1 + below(ports);

		/* The function must not read beyond the end of the burst. */
		burst.out_port[i] = (uint8_t)ifidx;
		burst.m[i] = i < burst.n ? &mbuf[i] : NULL;
		n_ports += i < burst.n && count[ifidx] == 0;
		count[ifidx] += i < burst.n;
	}
	return n_ports;
}

static void
expect_in_order(uint64_t left, const unsigned int before[PORTS + 1])
{
	unsigned int n[PORTS + 1], n_listed = 0;

	memcpy(n, before, sizeof(n));
	for (unsigned int i = 0; i < burst.n; i++) {
		unsigned int ifidx = burst.out_port[i];

		if ((left >> i & 1) == 0)
			assert_ptr_equal(fwd.tx[ifidx].m[n[ifidx]++], &mbuf[i]);
	}
	for (unsigned int ifidx = 1; ifidx <= PORTS; ifidx++) {
		assert_int_equal(fwd.tx[ifidx].n, n[ifidx]);
		assert_int_equal(fwd.tx[ifidx].listed, n[ifidx] > 0);
		n_listed += n[ifidx] > 0;
		if (n[ifidx] > 0)
			assert_int_equal(fwd.tx[ifidx].port_id, FIRST_PORT + ifidx);
	}
	assert_int_equal(fwd.n_tx_used, n_listed);
}

static void
buffers_empty(void)
{
	memset(fwd.tx, 0, sizeof(fwd.tx));
	fwd.n_tx_used = 0;
}

static void
each_packet_is_in_its_buffer_in_order(void **state)
{
	unsigned int count[PORTS + 1], none[PORTS + 1] = {0};

	skip_without_vectors();
	fwd.tx_burst = TX_BURST_MAX;
	for (unsigned int round = 0; round < ROUNDS; round++) {
		unsigned int ports = burst_make(count);
		uint64_t left;

		buffers_empty();
		left = spread(&burst);
		assert_int_equal(left & ~burst_all(&burst), 0);
		if (ports <= 12)
			assert_int_equal(left, 0);
		expect_in_order(left, none);
		/* A second burst is appended to the buffers of the first. */
		if (left == 0 && burst_make(none) <= 12) {
			assert_int_equal(spread(&burst), 0);
			expect_in_order(0, count);
		}
		memset(none, 0, sizeof(none));
	}
}

static void
without_room_all_packets_of_an_interface_are_left_over(void **state)
{
	unsigned int count[PORTS + 1], none[PORTS + 1] = {0}, n_left = 0;

	skip_without_vectors();
	fwd.tx_burst = 16;
	for (unsigned int round = 0; round < ROUNDS; round++) {
		unsigned int ports = burst_make(count);
		uint64_t left;
		bool full = false;

		/* Skip a full buffer: it would be sent, and there is no port. */
		for (unsigned int ifidx = 1; ifidx <= PORTS; ifidx++)
			full |= count[ifidx] == fwd.tx_burst;
		if (full || ports > 12)
			continue;
		buffers_empty();
		left = spread(&burst);
		for (unsigned int i = 0; i < burst.n; i++)
			assert_int_equal(left >> i & 1,
					 count[burst.out_port[i]] > fwd.tx_burst);
		expect_in_order(left, none);
		n_left += left != 0;
	}
	assert_true(n_left > 100);
}

#define PORT 3
static unsigned int n_sent;
static void *queue[1], *no_callback[1];

static uint16_t
transmit(void *q, struct rte_mbuf **m, uint16_t n)
{
	n_sent += n;
	return n;
}

/*
 * Make a burst that leaves by PORT. `vlan`: the VLAN of all packets; 0: none. If `a_port`,
 * a field of the burst says that the packets of a port have one VLAN. Otherwise each mbuf
 * has the VLAN in its field `port`.
 */
static void
burst_by(uint16_t vlan, bool a_port)
{
	burst.fwd = &fwd;
	burst.n = (uint16_t)(1 + below(16));
	burst.tags_out = vlan != 0;
	burst.vlan_a_port = vlan != 0 && a_port;
	for (unsigned int i = 0; i < burst.n; i++) {
		mbuf[i].port = vlan != 0 && !a_port ? vlan : 0;
		mbuf[i].pkt_len = 60 + below(1000);
		burst.m[i] = &mbuf[i];
		burst.out_port[i] = PORT;
		burst.hop[i] = vlan != 0 ? vlan : PORT;
	}
}

static void
frames_are_counted_for_their_vlan_whoever_is_in_the_buffer(void **state)
{
	static struct counters count;
	static struct fib_iface vlan[2] = {{.port = PORT}, {.port = PORT}};
	struct rte_eth_fp_ops *ops = &rte_eth_fp_ops[FIRST_PORT + PORT];
	struct fwd_conf conf = {.index = 0};
	uint64_t packets[3] = {0}, bytes[3] = {0};
	static struct rte_mbuf all[8][16];

	skip_without_vectors();
	fwd.conf = &conf;
	memset(&count, 0, sizeof(count)); /* the test runs once for each instruction set */
	fwd.count = &count;
	fwd.tx_burst = TX_BURST_MAX;
	ops->tx_pkt_burst = transmit;
	ops->txq.data = queue;
	ops->txq.clbk = no_callback;
	for (unsigned int k = 0; k < 2; k++)
		atomic_store(&fwd.fib->iface[PORT_MAX + k], &vlan[k]);
	buffers_empty();
	n_sent = 0;
	for (unsigned int round = 0; round < ROUNDS; round++) {
		for (unsigned int n = 1 + below(8), j = 0; j < n; j++) {
			unsigned int k = below(3); /* 2: the port itself */
			uint16_t by = k < 2 ? (uint16_t)(PORT_MAX + k) : 0;

			burst_by(by, below(4) != 0);
			for (unsigned int i = 0; i < burst.n; i++) {
				all[j][i] = mbuf[i];
				burst.m[i] = &all[j][i];
				packets[k]++;
				bytes[k] += mbuf[i].pkt_len;
			}
			if (below(4) != 0)
				assert_int_equal(spread(&burst), 0);
			else
				for (unsigned int i = 0; i < burst.n; i++)
					fwd_tx(&fwd, by != 0 ? by : PORT, burst.m[i]);
		}
		fwd_tx_flush(&fwd);
	}
	for (unsigned int k = 0; k < 2; k++) {
		const struct if_counters *c = &count.port[PORT_MAX + k];

		assert_int_equal(c->tx_packets, packets[k]);
		assert_int_equal(c->tx_bytes, bytes[k]);
		atomic_store(&fwd.fib->iface[PORT_MAX + k], NULL);
	}
	assert_int_equal(count.port[PORT].tx_packets, packets[0] + packets[1] + packets[2]);
	assert_int_equal(count.port[PORT].tx_bytes, bytes[0] + bytes[1] + bytes[2]);
	assert_int_equal(count.port[PORT].tx_packets, n_sent);
	buffers_empty();
}

static int
set_up(void **state)
{
	unsigned int seed = (unsigned int)getpid();

	print_message("seed %u\n", seed);
	srandom(seed);
	if (fib_create(&fwd.fib, &(struct fib_conf){.n_nodes = 0}) < 0)
		return -1;
	for (uint16_t ifidx = 1; ifidx <= PORTS; ifidx++) {
		iface[ifidx].port_id = (uint16_t)(FIRST_PORT + ifidx);
		atomic_store(&fwd.fib->iface[ifidx], &iface[ifidx]);
	}
	return 0;
}

static int
tear_down(void **state)
{
	for (unsigned int ifidx = 1; ifidx <= PORTS; ifidx++)
		atomic_store(&fwd.fib->iface[ifidx], NULL);
	fib_destroy(fwd.fib);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_packet_is_in_its_buffer_in_order),
		cmocka_unit_test(without_room_all_packets_of_an_interface_are_left_over),
		cmocka_unit_test(
			frames_are_counted_for_their_vlan_whoever_is_in_the_buffer),
	};

	return run_with_isas_from(FWD_SSE4, tests, set_up, tear_down);
}
