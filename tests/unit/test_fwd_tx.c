/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ring of a port is full of packets in transit. Frames of this router (from the kernel
 * or BFD) are sent before these packets. No such frame is lost; each leaves when the ring
 * has room. Frames to a port that takes nothing are dropped after a time.
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

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <string.h>
#include <urcu/urcu-qsbr.h>

#include "eal.h"
#include "fib/fib.h"
#include "fwd/fwd.h"
#include "fwd/tx.h"
#include "port/packet_meta.h"

#define PORT    1
#define VLAN    PORT_MAX
#define BURST   32
#define RING    64 /* descriptors */
#define N_MBUF  511
#define TRANSIT 0xffffffffu /* number of every frame in transit */

static struct fib *fib;
static struct fib_iface iface[2];
static struct fwd fwd;
static struct fwd_conf conf;
static struct counters count;
static struct rte_mempool *pool;
static struct {
	struct rte_mbuf *m[RING]; /* frames that are taken and not on the wire yet */
	unsigned int n;
	uint32_t next;        /* number of the next frame of this router on the wire */
	unsigned int transit; /* frames in transit on the wire */
	unsigned int called;  /* transmit calls */
	bool own_first;       /* no frame of this router came behind a frame in transit */
} device;
static bool clock_stands; /* see round_with() */

static uint32_t *
number_of(struct rte_mbuf *m)
{
	return rte_pktmbuf_mtod(m, uint32_t *);
}

static uint16_t
device_takes(void *queue, struct rte_mbuf **m, uint16_t n)
{
	bool transit = false;
	uint16_t took = 0;

	device.called++;
	for (uint16_t i = 0; i < n; i++) {
		transit = transit || *number_of(m[i]) == TRANSIT;
		if (transit && *number_of(m[i]) != TRANSIT)
			device.own_first = false;
	}
	while (took < n && device.n < RING)
		device.m[device.n++] = m[took++];
	return took;
}

/*
 * Send the first `n` frames of the ring on the wire. The frames of this router are in
 * order.
 */
static void
wire_take(unsigned int n)
{
	n = n < device.n ? n : device.n;
	for (unsigned int i = 0; i < n; i++) {
		uint32_t number = *number_of(device.m[i]);

		if (number == TRANSIT)
			device.transit++;
		else
			assert_int_equal(number, device.next++);
		rte_pktmbuf_free(device.m[i]);
	}
	device.n -= n;
	memmove(device.m, device.m + n, device.n * sizeof(device.m[0]));
}

static struct rte_mbuf *
frame_new(uint32_t number)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

	assert_non_null(m);
	memcpy(rte_pktmbuf_append(m, 64), &number, sizeof(number));
	m->port = 0;
	return m;
}

static int
setup(void **state)
{
	static void *queues[RTE_MAX_QUEUES_PER_PORT], *calls[RTE_MAX_QUEUES_PER_PORT];
	struct rte_eth_fp_ops *ops = &rte_eth_fp_ops[0];

	assert_int_equal(fib_create(&fib, &(struct fib_conf){0}), 0);
	memset(&fwd, 0, sizeof(fwd));
	memset(&count, 0, sizeof(count));
	memset(&device, 0, sizeof(device));
	device.own_first = true;
	clock_stands = true;
	iface[0] =
		(struct fib_iface){.ifidx = PORT, .port = PORT, .ifindex = 11, .up = true};
	iface[1] =
		(struct fib_iface){.ifidx = VLAN, .port = PORT, .ifindex = 12, .up = true};
	fib->iface[PORT] = &iface[0];
	fib->iface[VLAN] = &iface[1];
	fwd = (struct fwd){.conf = &conf, .fib = fib, .count = &count, .tx_burst = BURST};
	ops->tx_pkt_burst = device_takes;
	ops->txq.data = queues;
	ops->txq.clbk = calls;
	return 0;
}

static int
teardown(void **state)
{
	fwd_tx_drop(&fwd);
	wire_take(RING);
	assert_int_equal(rte_mempool_avail_count(pool), N_MBUF); /* each buffer came back */
	fib->iface[PORT] = fib->iface[VLAN] = NULL;
	fib_destroy(fib);
	return 0;
}

/*
 * Run a round of a forwarder with `own` frames of this router, whose numbers begin with
 * `from`, and `transit` frames in transit. If `clock_stands`, no time has passed since the
 * last round, although this thread may have waited for a CPU for longer than TX_KEEP_MS.
 */
static void
round_with(uint32_t from, unsigned int own, unsigned int transit)
{
	if (clock_stands && fwd.tx[PORT].kept_tsc != 0)
		fwd.tx[PORT].kept_tsc = rte_rdtsc();
	fwd_tx_own(&fwd);
	for (unsigned int i = 0; i < own; i++)
		fwd_tx(&fwd, (from + i) % 4 == 0 ? VLAN : PORT, frame_new(from + i));
	fwd_tx_own_end(&fwd);
	for (unsigned int i = 0; i < transit; i++)
		fwd_tx(&fwd, i % 3 == 0 ? VLAN : PORT, frame_new(TRANSIT));
	fwd_tx_flush(&fwd);
}

static uint64_t
lost(void)
{
	return counter_read(&count.reason[DROP_tx_full]);
}

/*
 * The port is slower than the packets in transit. Its driver frees 16 descriptors at a
 * time, in every eighth round. In the other rounds the ring has no room.
 */
static void
frames_of_this_router_pass_a_full_ring(void **state)
{
	uint32_t sent = 0;
	unsigned int offered = 0, waited = 0;

	for (unsigned int r = 0; r < 400; r++) {
		unsigned int own = r % 2;

		round_with(sent, own, 40);
		sent += own;
		offered += 40;
		if (r % 8 == 7)
			wire_take(16);
		/*
		 * A frame waits up to eight rounds for room in the ring, and then in the
		 * ring.
		 */
		waited = sent - device.next;
		assert_true(waited <= 4 + RING);
	}
	assert_true(device.own_first);
	for (unsigned int r = 0; r < 3; r++) { /* the flood ends */
		wire_take(RING);
		round_with(sent, 0, 0);
	}
	wire_take(RING);
	assert_int_equal(device.next, sent);
	assert_int_equal(fwd.n_tx_used, 0); /* the forwarder may sleep */
	assert_int_equal(lost() + device.transit, offered);
	assert_int_equal(counter_read(&count.port[PORT].tx_packets), sent + device.transit);
	assert_true(counter_read(&count.port[VLAN].tx_packets) >= sent / 4);
}

/* The oldest frames are kept, so the wire has them in order. */
static void
half_a_buffer_is_kept_at_most(void **state)
{
	round_with(0, BURST, 2 * RING); /* the ring is full from here on */
	assert_int_equal(device.n, RING);
	wire_take(0);
	round_with(BURST, BURST - 1, 1);
	assert_int_equal(fwd.tx[PORT].n, BURST / 2);
	round_with(2 * BURST, 3 * BURST, 0);
	assert_int_equal(fwd.tx[PORT].n, BURST / 2);
	assert_int_equal(fwd.n_tx_used, 1); /* the forwarder does not sleep */
}

/* Frames of this router are dropped after they have waited for TX_KEEP_MS. */
static void
a_port_that_takes_nothing_loses_them_after_a_time(void **state)
{
	uint64_t until, before;

	round_with(0, 0, RING);
	round_with(0, 3, 1);
	assert_int_equal(fwd.tx[PORT].n, 3);
	before = lost();
	clock_stands = false;
	until = rte_rdtsc() + rte_get_tsc_hz() / 1000 * (TX_KEEP_MS + 1);
	while (rte_rdtsc() < until)
		;
	round_with(0, 0, 0);
	assert_int_equal(lost() - before, 3);
	assert_int_equal(fwd.n_tx_used, 0);
	assert_false(fwd.tx[PORT].listed);
	wire_take(RING);
	round_with(0, 2, 2); /* the port works again */
	assert_int_equal(device.n, 4);
}

/* A port without a TAP is being removed: after a round no thread calls its driver. */
static void
a_port_that_is_removed_loses_them_at_once(void **state)
{
	unsigned int called;

	round_with(0, 0, RING);
	round_with(0, 3, 0);
	assert_int_equal(fwd.tx[PORT].n, 3);
	iface[0].ifindex = 0;
	called = device.called;
	round_with(0, 0, 0);
	assert_int_equal(device.called, called);
	assert_int_equal(counter_read(&count.reason[DROP_egress_down]), 3);
	assert_int_equal(fwd.n_tx_used, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(frames_of_this_router_pass_a_full_ring,
						setup, teardown),
		cmocka_unit_test_setup_teardown(half_a_buffer_is_kept_at_most, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			a_port_that_takes_nothing_loses_them_after_a_time, setup, teardown),
		cmocka_unit_test_setup_teardown(a_port_that_is_removed_loses_them_at_once,
						setup, teardown),
	};
	int failed;

	if (eal_begin("fwd_tx", "net_null0", "net_null1") < 0)
		return 1;
	pool = rte_pktmbuf_pool_create("fwd_tx", N_MBUF, 0, PACKET_PRIV_BYTES, 256, 0);
	if (pool == NULL)
		return 1;
	urcu_qsbr_register_thread();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	urcu_qsbr_unregister_thread();
	rte_eal_cleanup();
	return failed;
}
