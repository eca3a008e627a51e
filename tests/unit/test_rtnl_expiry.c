/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When the rtnl thread reads routes with limited lifetimes again. test_rtnl.c shows with a
 * kernel that such routes go; here are the exact times, by the results of dumps at given
 * times.
 *
 * link: fpm-dataplane/rtnl/new_link.c fpm-dataplane/rtnl/dump.c fpm-dataplane/rtnl/pass.c fpm-dataplane/rtnl/plan.c
 * link: fpm-dataplane/rtnl/socket.c fpm-dataplane/rtnl/tables.c fpm-dataplane/netlink/
 * link: fpm-dataplane/rtnl/changes.c fpm-dataplane/rtnl/rule_names.c
 * link: fpm-dataplane/base/ tap-bridge/netns.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "rtnl/rtnl.c"

static struct rtnl r;

static int
setup(void **state)
{
	memset(&r, 0, sizeof(r));
	return 0;
}

/*
 * End a dump that began at `begin_ms` and had `n_expired` expired routes. `life_ms`: the
 * shortest lifetime of its other routes; 0: they have none. Return the milliseconds until
 * the next dump; 0: there is none.
 */
static uint32_t
after_dump(uint64_t begin_ms, uint32_t n_expired, uint32_t life_ms)
{
	r.dump_begin_ms = begin_ms;
	r.n_expired = n_expired;
	r.expires_ms = life_ms;
	expiry_limit(&r);
	return r.expires_ms;
}

static void
routes_without_a_lifetime_are_not_read_again(void **state)
{
	assert_int_equal(after_dump(5000, 0, 0), 0);
	assert_int_equal(after_dump(9000, 0, 0), 0);
}

static void
the_shortest_lifetime_counts_up_to_a_limit(void **state)
{
	static const uint32_t limit[] = {LIFE_MS, LIFE_LARGE_MS};

	for (unsigned int large = 0; large < 2; large++) {
		r.large = large != 0;
		assert_int_equal(after_dump(5000, 0, 1), 1);
		assert_int_equal(after_dump(5000, 0, limit[large] - 1), limit[large] - 1);
		assert_int_equal(after_dump(5000, 0, limit[large]), limit[large]);
		assert_int_equal(after_dump(5000, 0, limit[large] + 1), limit[large]);
	}
	assert_int_equal(LIFE_MS, 2000);
	assert_int_equal(LIFE_LARGE_MS, 60000);
}

/*
 * A lifetime below one tick looks like no lifetime. So dumps go on until a dump has begun
 * EXPIRED_MS after the first dump without a lifetime.
 */
static void
dumps_are_repeated_until_no_lifetime_can_be_hidden(void **state)
{
	static const uint32_t again[] = {EXPIRED_MS, EXPIRED_LARGE_MS};

	for (unsigned int large = 0; large < 2; large++) {
		uint64_t begin = 5000;

		setup(NULL);
		r.large = large != 0;
		assert_int_equal(after_dump(begin, 0, 50), 50);
		/*
		 * Twice, because the time of the first is forgotten when a lifetime is
		 * seen.
		 */
		for (unsigned int i = 0; i < 2; i++) {
			begin += 1000;
			assert_int_equal(after_dump(begin, 0, 0), again[large]);
			assert_int_equal(after_dump(begin + 1, 0, 0), again[large]);
			assert_int_equal(after_dump(begin + again[large] - 1, 0, 0),
					 again[large]);
			begin += again[large] - 1;
			if (i == 0)
				assert_int_equal(after_dump(begin, 0, 50), 50);
			else
				assert_int_equal(after_dump(begin + 1, 0, 0), 0);
		}
		/* Nothing is left to wait for. */
		assert_int_equal(after_dump(begin + 2, 0, 0), 0);
	}
	/* A single route that has expired, and is gone in the next dump. */
	setup(NULL);
	assert_int_equal(after_dump(5000, 1, 0), 100);
	assert_int_equal(after_dump(5200, 0, 0), 100);
	assert_int_equal(after_dump(5300, 0, 0), 0);
	assert_int_equal(EXPIRED_MS, 100);
	assert_int_equal(EXPIRED_LARGE_MS, 5000);
}

/*
 * The time until the next dump is an eighth of the time since the last route expired, but
 * at least 100 ms and at most 2 s.
 */
static void
a_route_that_stays_expired_is_read_at_growing_times(void **state)
{
	uint64_t since = 10000;

	assert_int_equal(after_dump(since, 1, 0), 100);
	assert_int_equal(after_dump(since + 807, 1, 0), 100);
	assert_int_equal(after_dump(since + 808, 1, 0), 101);
	assert_int_equal(after_dump(since + 8000, 1, 0), 1000);
	assert_int_equal(after_dump(since + 16000, 1, 0), 2000);
	assert_int_equal(after_dump(since + 16008, 1, 0), 2000);
	assert_int_equal(after_dump(since + 90000, 1, 0), 2000);
	/* A shorter lifetime of another route, and a longer one. */
	assert_int_equal(after_dump(since + 8000, 1, 999), 999);
	assert_int_equal(after_dump(since + 8000, 1, 1001), 1000);
	/* A second route expires: the time begins again. It does not when a route goes. */
	assert_int_equal(after_dump(since + 20000, 2, 0), 100);
	assert_int_equal(after_dump(since + 28000, 2, 0), 1000);
	assert_int_equal(after_dump(since + 28000, 1, 0), 1000);
	assert_int_equal(after_dump(since + 30000, 2, 0), 100);
	/* All are gone: a lifetime may still be hidden. */
	assert_int_equal(after_dump(since + 31000, 0, 0), 100);
	assert_int_equal(after_dump(since + 31100, 0, 0), 0);
	/* With large tables from 5 s to 60 s. */
	r.large = true;
	assert_int_equal(after_dump(since + 40000, 1, 0), 5000);
	assert_int_equal(after_dump(since + 80008, 1, 0), 5001);
	assert_int_equal(after_dump(since + 40000 + 8 * 60001, 1, 0), 60000);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(routes_without_a_lifetime_are_not_read_again, setup),
		cmocka_unit_test_setup(the_shortest_lifetime_counts_up_to_a_limit, setup),
		cmocka_unit_test_setup(dumps_are_repeated_until_no_lifetime_can_be_hidden,
				       setup),
		cmocka_unit_test_setup(a_route_that_stays_expired_is_read_at_growing_times,
				       setup),
	};

	return cmocka_run_group_tests_name("rtnl_expiry", tests, NULL, NULL);
}
