/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel's neighbor table has more hosts than neigh has places. A host without a place
 * gets the next place that is freed.
 *
 * link: fpm-dataplane/neigh/ fpm-dataplane/fib/ fpm-dataplane/base/ tap-bridge/ poptrie/
 */
#include "test_neigh.h"

#include "base/limits.h"

static uint32_t
host_adj_of(struct rig *r, int h)
{
	char text[32];

	snprintf(text, sizeof(text), "192.0.2.%d", h);
	return host_adj(r, text);
}

/* Return the last octet of the first host from .20 on that has a place. */
static int
host_placed(struct rig *r)
{
	for (int h = 20; h < 50; h++)
		if (host_adj_of(r, h) != 0)
			return h;
	return 0;
}

static void
place_given_back_has_the_next_host_at_once(void **state)
{
	enum { PLACES = 16, ROUNDS = 8 };
	struct rig *r = rig_of(state);
	struct table_limits few;
	int64_t begin;

	for (unsigned int i = 0; i < N_TABLE; i++)
		few.max[i] = table_limit(NULL, (enum table)i);
	few.max[TABLE_hosts] = PLACES;
	r->limits = &few;
	rig_start(r);
	wait_for(r, said_up(&r->rib, "t0", true));
	for (int h = 20; h < 50; h++)
		ip(r->bed, "neigh replace 192.0.2.%d dev t0 lladdr %s nud permanent", h,
		   "02:00:5e:00:53:0b");
	wait_for(r, table_state(TABLE_hosts).refused >= 30 - PLACES);

	/*
	 * A sweep every five seconds would give places to some of the waiting hosts, but
	 * not to all within the limit below.
	 */
	begin = now_ms();
	for (int i = 0; i < ROUNDS; i++) {
		unsigned int n = 0;

		ip(r->bed, "neigh del 192.0.2.%d dev t0", host_placed(r));
		wait_for(r, host_adj_of(r, 20 + PLACES + i) != 0);
		for (int h = 20; h < 50; h++)
			n += host_adj_of(r, h) != 0;
		assert_int_equal(n, PLACES);
	}
	assert_in_range(now_ms() - begin, 0, 5000 * (ROUNDS - 2));
	/* Each of these hosts was refused once. */
	assert_int_equal(table_state(TABLE_hosts).refused, 30 - PLACES);
	rig_stop(r);
}

/* Each table reports the limit of its own key. */
static void
limits_of_the_file_are_those_of_the_tables(void **state)
{
	static const enum table of_neigh[] = {TABLE_neighbors, TABLE_vlans, TABLE_vrfs,
					      TABLE_asked};
	struct rig *r = rig_of(state);
	struct table_limits limits;

	for (unsigned int i = 0; i < N_TABLE; i++)
		limits.max[i] = table_limit(NULL, (enum table)i);
	for (unsigned int i = 0; i < 4; i++)
		limits.max[of_neigh[i]] = 40 + i;
	r->limits = &limits;
	rig_start(r);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(table_state(of_neigh[i]).max, 40 + i);
	rig_stop(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		bed_test(place_given_back_has_the_next_host_at_once),
		bed_test(limits_of_the_file_are_those_of_the_tables),
	};

	return cmocka_run_group_tests_name("neigh_few", tests, NULL, NULL);
}
