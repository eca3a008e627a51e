/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fpm thread when memory runs out: the session ends with a reason, rib hears of it, and
 * zebra may come again when there is memory.
 *
 * link: fpm-dataplane/fpm/decode.c fpm-dataplane/fpm/feedback.c fpm-dataplane/fpm/frame.c
 * link: fpm-dataplane/fpm/hold.c fpm-dataplane/fpm/listen.c fpm-dataplane/fpm/peer.c
 * link: fpm-dataplane/fpm/server.c fpm-dataplane/fpm/session.c
 * link: fpm-dataplane/netlink/message.c fpm-dataplane/netlink/segments.c
 * link: fpm-dataplane/netlink/exchange.c fpm-dataplane/base/ tap-bridge/netns.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <cmocka.h>

#include <stdatomic.h>
#include <stdlib.h>

/*
 * no_batch: there is no memory for batches. no_smaller: a block of hops cannot be moved to
 * a smaller block.
 */
static atomic_bool no_batch, no_smaller;

static void *
scarce(size_t bytes)
{
	return atomic_load(&no_batch) ? NULL : malloc(bytes);
}

static void *
scarce_again(void *p, size_t bytes)
{
	return atomic_load(&no_smaller) ? NULL : realloc(p, bytes);
}

#define malloc(bytes) scarce(bytes)
#include "fpm/queue.c"
#undef malloc
#define realloc(p, bytes) scarce_again(p, bytes)
#include "netlink/hops.c"
#undef realloc

#include "log_said.h"
#include "test_fpm_bench.h"

/*
 * Assert that fpm accepts no client during three rounds that try to send the queue. In each
 * round it listens until the try fails. It closes the connection of a client that connects
 * in that time.
 */
static void
no_client_is_accepted(struct bench *b)
{
	uint64_t accepts = fpm_status.accepts, end_ms = monotonic_ms() + 300;

	while (monotonic_ms() < end_ms) {
		int fd = client_try(b);

		if (fd >= 0)
			is_hung_up(fd);
		else
			assert_true(fd == -ECONNREFUSED || fd == -ECONNRESET);
		poll(NULL, 0, 10);
	}
	assert_int_equal(fpm_status.accepts, accepts);
}

static void
a_session_without_memory_ends_and_zebra_comes_again(void **state)
{
	struct bench *b = bench_new(1 << 20);
	int fd = client(b);

	send_route(fd, "192.0.2.0/24", 1);
	rib_hears(&b->rib, "up gen1 pid4242;route 192.0.2.0/24 t254 nh1;");
	atomic_store(&no_batch, true);
	send_route(fd, "198.51.100.0/24", 2);
	is_hung_up(fd);
	eventually(fpm_status.closes == 1);
	assert_int_equal(fpm_status.overflows, 1);
	no_client_is_accepted(b);
	/* Rounds without a session are not counted as overflows. */
	assert_int_equal(fpm_status.overflows, 1);
	assert_int_equal(fpm_status.closes, 1);
	assert_true(rib_text_is(&b->rib, ""));
	atomic_store(&no_batch, false);
	/* The route is lost with its session. rib still hears of the end of the session. */
	rib_hears(&b->rib, "down gen1 pid4242;");
	fd = client_when_welcome(b);
	send_route(fd, "198.51.100.0/24", 2);
	rib_hears(&b->rib, "up gen2 pid4242;route 198.51.100.0/24 t254 nh2;");
	assert_int_equal(fpm_status.overflows, 1);
	close(fd);
	bench_free(b);
}

static void
a_zebra_that_speaks_without_memory_is_known(void **state)
{
	struct bench *b = bench_new(1 << 20);
	int fd = client(b);

	rib_hears(&b->rib, "up gen1 pid0;"); /* the client has not said its port id yet */
	atomic_store(&no_batch, true);
	send_route(fd, "192.0.2.0/24", 1);
	is_hung_up(fd);
	eventually(fpm_status.closes == 1);
	atomic_store(&no_batch, false);
	rib_hears(&b->rib, "zebra pid4242;down gen1 pid4242;");
	bench_free(b);
}

/* The queue keeps no pointer to hops that a batch has. asan sees a second free(). */
static void
hops_that_rib_has_are_not_freed_when_the_thread_stops(void **state)
{
	struct bench *b = bench_new(1 << 20);
	struct wire *w = one_frame();
	int fd = client(b);

	send_route(fd, "192.0.2.0/24", 1);
	rib_hears(&b->rib, "up gen1 pid4242;route 192.0.2.0/24 t254 nh1;");
	put_nexthop(w, 1, "192.0.2.1", 2);
	frame_end(w);
	client_send(fd, w->octet, w->len);
	rib_hears(&b->rib, "nexthop 1 [192.0.2.1 if2 w1];");
	bench_free(b);
	free(w);
	close(fd);
}

static void
hops_stay_where_they_are_if_they_cannot_be_moved(void **state)
{
	_Alignas(8) uint8_t octets[256] = {0};
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(octets);
	struct fpm_event ev = {.n_hops = 0};
	struct nlattr *outer = mnl_attr_nest_start(nlh, RTA_MULTIPATH);

	for (int i = 0; i < 2; i++) {
		struct rtnexthop *nh = mnl_nlmsg_get_payload_tail(nlh);

		*nh = (struct rtnexthop){.rtnh_len = sizeof(*nh) + 8,
					 .rtnh_ifindex = 7 + i};
		nlh->nlmsg_len += sizeof(*nh);
		mnl_attr_put_u32(nlh, RTA_GATEWAY, htonl(0xc0000201u + (uint32_t)i));
	}
	mnl_attr_nest_end(nlh, outer);
	for (int i = 0; i < 2; i++) {
		atomic_store(&no_smaller, i == 0);
		assert_int_equal(hops_multipath(&ev, outer, 4), 0);
		assert_non_null(ev.hops);
		assert_int_equal(ev.n_hops, 2);
		assert_int_equal(ev.hops[0].ifindex, 7);
		assert_int_equal(ev.hops[1].ifindex, 8);
		free(ev.hops);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_session_without_memory_ends_and_zebra_comes_again),
		cmocka_unit_test(a_zebra_that_speaks_without_memory_is_known),
		cmocka_unit_test(hops_that_rib_has_are_not_freed_when_the_thread_stops),
		cmocka_unit_test(hops_stay_where_they_are_if_they_cannot_be_moved),
	};

	return cmocka_run_group_tests_name("fpm_memory", tests, NULL, NULL);
}
