/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rtnl thread when memory runs out for the next hops of a route: an event is not lost,
 * and a dump removes no route.
 * link: fpm-dataplane/rib/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: fpm-dataplane/rtnl/ fpm-dataplane/netlink/kernel_message.c
 * link: fpm-dataplane/netlink/message.c fpm-dataplane/netlink/rule_message.c
 * link: fpm-dataplane/netlink/segments.c tap-bridge/netns.c tap-bridge/tap.c
 * link: tests/unit/rib_rig.c tests/fuzz/invariants.c
 * link: tests/unit/rig_kernel.c
 */
#include <stdatomic.h>
#include <stdlib.h>

static atomic_bool no_memory; /* for next hops */

static void *
scarce(size_t bytes)
{
	return atomic_load(&no_memory) ? NULL : malloc(bytes);
}

#define malloc(bytes) scarce(bytes)
#include "netlink/hops.c"
#undef malloc

#include "rtnl_scene.h"

#define NET  "198.51.100.0/24"
#define NET2 "203.0.113.0/24"

static void
an_event_without_memory_makes_it_read_the_tables(void **state)
{
	struct scene *s = started(state);
	uint64_t failed = count(&kernel_status.malformed);

	ip(s->bed, "route add " NET2 " via 192.0.2.9");
	wait_for(s, n_of(s, NET2) == 1);
	atomic_store(&no_memory, true);
	ip(s->bed, "route add " NET " via 192.0.2.9 proto 77");
	ip(s->bed, "route del " NET2);
	wait_for(s, count(&kernel_status.malformed) >= failed + 2);
	atomic_store(&no_memory, false);
	wait_for(s, gateways_are(s, NET, "192.0.2.9"));
	wait_for(s, n_of(s, NET2) == 0);
	stop(s);
}

static void
a_dump_without_memory_removes_no_route(void **state)
{
	struct scene *s = started(state);
	uint64_t dumps, failed;

	ip(s->bed, "route add " NET " via 192.0.2.9");
	wait_for(s, n_of(s, NET) == 1);
	wait_for(s, atomic_load(&kernel_status.in_step) == 1);
	dumps = count(&kernel_status.dumps);
	failed = count(&kernel_status.malformed);
	atomic_store(&no_memory, true);
	worker_send(&s->rtnl, msg_new(MSG_REPLAY, sizeof(struct msg)));
	wait_for(s, count(&kernel_status.malformed) > failed);
	wait_for(s, count(&kernel_status.dumps) >= dumps + 10);
	rig_settle(s->g);
	assert_int_equal(n_of(s, NET), 1);
	atomic_store(&no_memory, false);
	ip(s->bed, "route del " NET);
	wait_for(s, n_of(s, NET) == 0);
	stop(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		bed_test(an_event_without_memory_makes_it_read_the_tables),
		bed_test(a_dump_without_memory_removes_no_route),
	};

	return cmocka_run_group_tests_name("rtnl: memory", tests, NULL, NULL);
}
