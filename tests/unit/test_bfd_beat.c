/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Thread bfd changes the packets of a session more than once before the forwarder reads the
 * beat. The forwarder still sends the answer to a Poll, and the packet that was due at
 * once.
 *
 * link: fpm-dataplane/bfd/beat.c fpm-dataplane/bfd/fsm.c fpm-dataplane/bfd/packet.c
 * link: fpm-dataplane/fwd/ fpm-dataplane/fib/ fpm-dataplane/ruleset/ poptrie/
 * link: fpm-dataplane/port/watch.c fpm-dataplane/port/rxq.c fpm-dataplane/port/bfd.c
 * link: fpm-dataplane/base/counters.c fpm-dataplane/base/due.c fpm-dataplane/base/filter.c
 * link: fpm-dataplane/base/huge.c fpm-dataplane/base/idle.c fpm-dataplane/base/log.c
 * link: fpm-dataplane/base/log_out.c fpm-dataplane/base/peers.c fpm-dataplane/base/policer.c
 * link: fpm-dataplane/base/prefix.c fpm-dataplane/base/sched.c fpm-dataplane/base/kernel_outer.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <urcu/urcu-qsbr.h>

#include "base/idle.h"
#include "base/inet.h"
#include "bfd/impl.h"
#include "eal.h"
#include "fib/fib.h"
#include "fwd/bfd.h"
#include "port/packet_meta.h"

#include "bfd_session.h" /* its `usual` must follow base/limits.h */

#define NUMBER 1
#define PORT   1

static struct bfd bfd;
static struct fwd_rings rings;
static struct idle idle;
static struct kept kept;
static struct session *const session = &bfd.session[NUMBER];
static struct fwd fwd;
static struct fwd_conf conf;
static struct counters count;
static struct rte_mempool *pool;

/* --- the rest of thread bfd ----------------------------------------------------------- */

uint32_t
session_tx_us(const struct session *s)
{
	return bfd_fsm_tx_us(&s->k->fsm);
}

uint32_t
session_echo_us(const struct session *s)
{
	return 0;
}

void
timer_set(struct bfd *b, const struct session *s, enum bfd_timer t, uint64_t when)
{
}

void
lend_faster(struct bfd *b, uint32_t interval_us)
{
}

void
kernel_publish(struct bfd *b, struct session *s, bool now, bool final)
{
}

void
kernel_end(struct bfd *b, struct session *s)
{
}

void
worker_defer(struct worker *w, void (*fn)(void *owner, void *arg), void *arg)
{
	fn(NULL, arg);
}

/* --- the rest of the forwarder -------------------------------------------------------- */

__thread enum role thread_role;

void
worker_wake(struct worker *w)
{
}

/* --- the forwarder -------------------------------------------------------------------- */

/*
 * Let the forwarder read the beat, and return the number of packets that it sends. Their
 * neighbor is not known, so the punt thread gets them. `finals`: packets with the Final
 * bit.
 */
static unsigned int
forwarder_sends(unsigned int *finals)
{
	unsigned int n = 0;
	void *m;

	*finals = 0;
	fwd_bfd_send(&fwd);
	while (rte_ring_sc_dequeue(rings.punt[CLASS_glean], &m) == 0) {
		const uint8_t *ip = rte_pktmbuf_mtod_offset((struct rte_mbuf *)m,
							    const uint8_t *, L2_LEN);
		struct bfd_packet p;

		assert_int_equal(bfd_packet_read(&p, ip + 28, BFD_OCTETS), BFD_PACKET_OK);
		*finals += p.final;
		n++;
		rte_pktmbuf_free(m);
	}
	return n;
}

static unsigned int
finals_sent(void)
{
	unsigned int finals;

	forwarder_sends(&finals);
	return finals;
}

static unsigned int
packets_sent(void)
{
	unsigned int finals;

	return forwarder_sends(&finals);
}

static int
setup(void **state)
{
	static struct fib_iface iface = {.ifidx = PORT, .port = PORT, .ifindex = 11};
	struct bfd_conf slow = usual;
	struct fib *fib;

	/* No periodic packet is due while the test runs. */
	slow.min_tx_us = 1000000000;
	assert_int_equal(fib_create(&fib, &(struct fib_conf){0}), 0);
	fib->iface[PORT] = &iface;
	bfd.setup = (struct bfd_setup){
		.table = bfd_table_create(), .rings = &rings, .n_fwd = 1};
	rings.idle = &idle;
	rings.punt[CLASS_glean] = rte_ring_create("punt", 64, 0, 0);
	assert_non_null(rings.punt[CLASS_glean]);
	conf = (struct fwd_conf){.fib = fib, .count = &count, .rings = rings};
	conf.bfd = bfd_pace_create(bfd.setup.table, pool, 0, 1);
	assert_non_null(conf.bfd);
	fwd = (struct fwd){.conf = &conf, .fib = fib, .count = &count};
	kept = (struct kept){.told = {.family = 4, .dst = {{192, 0, 2, 2}}}};
	kept.fsm = up(&slow);
	*session = (struct session){.k = &kept, .number = NUMBER};
	session->place = (struct place){.by = BY_FORWARDERS, .ifidx = PORT};
	beat_publish(&bfd, session, false, false);
	assert_int_equal(packets_sent(), 0);
	return 0;
}

static int
teardown(void **state)
{
	beat_end(&bfd, session);
	rte_ring_free(rings.punt[CLASS_glean]);
	bfd_pace_free(conf.bfd);
	bfd_table_free(bfd.setup.table);
	fwd.fib->iface[PORT] = NULL;
	fib_destroy(fwd.fib);
	return 0;
}

/* Before the forwarder reads the beat, the peer polls again or sends an ordinary packet. */
static void
a_poll_is_answered_after_another_change(void **state)
{
	beat_publish(&bfd, session, false, true);
	beat_publish(&bfd, session, false, false);
	assert_int_equal(finals_sent(), 1);
	assert_int_equal(packets_sent(), 0);
	beat_publish(&bfd, session, false, true);
	beat_publish(&bfd, session, false, true);
	beat_publish(&bfd, session, true, false);
	assert_int_equal(finals_sent(), 1);
	beat_publish(&bfd, session, false, false);
	assert_int_equal(finals_sent(), 0);
}

static void
a_change_is_sent_at_once_after_another_change(void **state)
{
	beat_publish(&bfd, session, true, false);
	beat_publish(&bfd, session, false, false);
	assert_int_equal(packets_sent(), 1);
	beat_publish(&bfd, session, false, false);
	assert_int_equal(packets_sent(), 0);
}

/* The packets that an ended session still had to send are not sent by the next session. */
static void
the_next_session_of_the_slot_has_no_part_in_it(void **state)
{
	beat_publish(&bfd, session, true, true);
	beat_end(&bfd, session);
	beat_publish(&bfd, session, false, false);
	assert_int_equal(packets_sent(), 0);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_poll_is_answered_after_another_change,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_change_is_sent_at_once_after_another_change, setup, teardown),
		cmocka_unit_test_setup_teardown(
			the_next_session_of_the_slot_has_no_part_in_it, setup, teardown),
	};
	int failed;

	if (eal_begin("bfd_beat", "net_null0", "net_null1") < 0)
		return 1;
	pool = rte_pktmbuf_pool_create("bfd_beat", 63, 0, PACKET_PRIV_BYTES, 256, 0);
	if (pool == NULL)
		return 1;
	urcu_qsbr_register_thread();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	urcu_qsbr_unregister_thread();
	rte_eal_cleanup();
	return failed;
}
