/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * zebra gets one acknowledgement of each route, after the forwarders have it.
 * link: fpm-dataplane/rib/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: tests/unit/rib_rig.c tests/unit/grace.c
 * link: tests/unit/rig_kernel.c
 */
#include "rib_rig.h"

#include "base/limits.h"
#include "log_said.h"

#include <stdio.h>

static struct rig *
with_feedback(struct rig *g)
{
	g->rib->conf.fpm = &g->fpm;
	g->rib->conf.feedback = true;
	rig_session(g, 100);
	rig_hop(g, 1, "192.0.2.1", 11);
	rig_go(g);
	return g;
}

static struct rig *
rig_with_feedback(void)
{
	return with_feedback(rig_two_ports());
}

/*
 * Return the acknowledgements since the last call, a blank behind each: "198.51.100.0/24
 * !10.0.0.0/8 ". "!" is a failure.
 */
static const char *
said(struct rig *g)
{
	static char out[1 << 21];
	char buf[PREFIX_STRLEN];
	size_t n = 0;
	struct msg *m;

	out[0] = '\0';
	while ((m = worker_take(&g->fpm)) != NULL) {
		const struct msg_feedback *f = (const struct msg_feedback *)m;

		assert_int_equal(m->type, MSG_FEEDBACK);
		assert_int_equal(f->gen, g->gen);
		for (uint32_t i = 0; i < f->n; i++)
			n += (size_t)snprintf(out + n, sizeof(out) - n, "%s%s ",
					      f->route[i].failed ? "!" : "",
					      prefix_str(&f->route[i].prefix, buf));
		msg_free(m);
	}
	return out;
}

static void
a_route_is_acknowledged_after_the_grace_period_and_once(void **state)
{
	struct rig *g = rig_with_feedback();

	rig_route(g, "198.51.100.0/24", 1);
	rig_route(g, "2001:db8:f::/48", 1);
	rig_go(g);
	assert_seen(g, "198.51.100.1", "192.0.2.1@1");
	assert_string_equal(said(g), "");
	rig_settle(g);
	assert_string_equal(said(g), "198.51.100.0/24 2001:db8:f::/48 ");
	rig_settle(g);
	assert_string_equal(said(g), "");
	rig_free(g);
}

static void
a_new_next_hop_is_waited_for(void **state)
{
	struct rig *g = rig_with_feedback();

	g->hold_ready = true;
	rig_route_inline(g, "198.51.100.0/24", "192.0.2.9", 11);
	rig_settle(g);
	assert_string_equal(said(g), "");
	rig_ready(g, "192.0.2.9", 11);
	rig_settle(g);
	assert_string_equal(said(g), "198.51.100.0/24 ");
	rig_free(g);
}

static void
a_route_sent_again_is_acknowledged_again_though_nothing_changes(void **state)
{
	struct rig *g = rig_with_feedback();
	uint64_t writes;

	rig_route(g, "198.51.100.0/24", 1);
	rig_settle(g);
	said(g);
	writes = g->rib->count.trie_writes;
	rig_route(g, "198.51.100.0/24", 1);
	rig_settle(g);
	assert_string_equal(said(g), "198.51.100.0/24 ");
	assert_int_equal(g->rib->count.trie_writes, writes);
	rig_free(g);
}

static void
an_unsupported_route_has_failed(void **state)
{
	struct rig *g = rig_with_feedback();
	struct fpm_event *ev;

	rig_route(g, "198.51.100.0/24", 2);
	ev = rig_event(g, FPM_NEXTHOP);
	ev->nhid = 2;
	ev->n_hops = 1;
	ev->hops = calloc(1, sizeof(*ev->hops));
	*ev->hops = (struct fpm_hop){.ifindex = 11, .weight = 1, .encap = HOP_MPLS};
	rig_route_type(g, "203.0.113.0/24", RTN_BLACKHOLE);
	rig_settle(g);
	assert_string_equal(said(g), "!198.51.100.0/24 203.0.113.0/24 ");
	rig_free(g);
}

/* --- full tables ---------------------------------------------------------------------- */

static void
a_route_that_is_refused_has_failed(void **state)
{
	struct rig *g = rig_with_feedback();
	struct routes *t = &g->rib->tables.main;

	rig_route(g, "198.51.100.0/24", 1);
	rig_settle(g);
	assert_string_equal(said(g), "198.51.100.0/24 ");
	t->n_chunks = ROUTE_CHUNKS; /* the table is full */
	t->of[0].at = t->of[0].end;
	rig_route(g, "203.0.113.0/24", 1);
	rig_route(g, "198.51.100.0/24", 1);
	rig_settle(g);
	assert_string_equal(said(g), "!203.0.113.0/24 198.51.100.0/24 ");
	assert_int_equal(g->rib->count.route_nomem, 1);
	t->n_chunks = 1;
	rig_free(g);
}

static void
a_route_without_an_adjacency_has_failed(void **state)
{
	char text[32];
	struct rig *g;

	rig_limit(TABLE_adjacencies, 1023);
	g = rig_with_feedback();
	rig_limits = NULL;

	for (unsigned int i = 0; i + 2 < g->fib->adj_hosts; i++) {
		snprintf(text, sizeof(text), "10.%u.%u.%u", i >> 16, i >> 8 & 255, i & 255);
		rig_hop(g, 1000 + i, text, 11);
		snprintf(text, sizeof(text), "11.%u.%u.%u/32", i >> 16, i >> 8 & 255,
			 i & 255);
		rig_route(g, text, 1000 + i);
	}
	rig_settle(g);
	assert_null(strchr(said(g), '!'));
	rig_hop(g, 8, "192.0.2.129", 12);
	rig_route(g, "198.51.100.0/24", 8);
	rig_hop(g, 9, "192.0.2.130", 12);
	rig_route(g, "203.0.113.0/24", 9);
	rig_settle(g);
	assert_int_equal(table_state(TABLE_adjacencies).refused, 1);
	assert_string_equal(said(g), "198.51.100.0/24 !203.0.113.0/24 ");
	/* A route whose link is down has not failed. */
	rig_link(g, 12, 2, false);
	rig_route(g, "198.51.100.0/24", 8);
	rig_settle(g);
	assert_string_equal(said(g), "198.51.100.0/24 ");
	/* There is room again: zebra gets acknowledgements without asking. */
	rig_link(g, 12, 2, true);
	rig_sentinel(g); /* ends the replay */
	rig_del(g, "11.0.0.0/32");
	rig_settle(g);
	rig_settle(g);
	assert_non_null(strstr(said(g), " 203.0.113.0/24 "));
	rig_free(g);
}

static void
a_route_without_a_group_has_failed(void **state)
{
	struct rig *g = rig_with_feedback();
	uint32_t n = g->rib->slots.n;
	struct msg *m;

	g->rib->slots.n = FIB_GROUP_MAX; /* all slots are in use */
	rig_route(g, "198.51.100.0/24", 1);
	rig_settle(g);
	assert_int_equal(table_state(TABLE_groups).refused, 1);
	assert_true(log_said("rib: table is full table=groups") > 0);
	assert_string_equal(said(g), "!198.51.100.0/24 ");
	g->rib->slots.n = n;
	rig_route(g, "198.51.100.0/24", 1);
	rig_settle(g);
	assert_string_equal(said(g), "198.51.100.0/24 ");
	/*
	 * Other routes may have found no slot either. When there is room again, rib asks
	 * zebra for a replay.
	 */
	rig_del(g, "198.51.100.0/24");
	rig_settle(g);
	m = worker_take(&g->fpm);
	assert_non_null(m);
	assert_int_equal(m->type, MSG_REPLAY);
	msg_free(m);
	assert_null(worker_take(&g->fpm));
	rig_free(g);
}

/* Return the number of acknowledgements in `text` that report success or failure. */
static unsigned int
count(const char *text, bool failed)
{
	unsigned int n[2] = {0, 0};

	for (; *text != '\0'; text = strchr(text, ' ') + 1)
		n[*text == '!']++;
	return n[failed];
}

static void
zebra_is_not_asked_for_routes_at_the_end(void **state)
{
	struct rig *g = rig_with_feedback();

	rig_route(g, "198.51.100.0/24", 1);
	rig_settle(g);
	assert_string_equal(said(g), "198.51.100.0/24 ");
	g->rib->slots.refused = true;
	/* The fpm thread ends before rib has handled its mailbox. */
	g->rib->stopping = true;
	rig_del(g, "198.51.100.0/24");
	rig_settle(g);
	assert_null(worker_take(&g->fpm));
	rig_free(g);
}

static void
a_route_without_memory_in_the_trie_has_failed_until_it_is_in(void **state)
{
	enum { N = 1500, MORE = 3000 };

	for (unsigned int bulk = 0; bulk < 2; bulk++) {
		struct rig *g = with_feedback(rig_poor(1));
		unsigned int failed, good;
		char text[32];

		for (unsigned int i = 0; i < MORE; i++) {
			uint32_t a = i * 2654435761u;

			if (i == N) {
				rig_settle(g);
				assert_int_equal(count(said(g), false), N);
				rig_no_memory = true;
			}
			snprintf(text, sizeof(text), "%u.%u.%u.%u/32", (a >> 24) % 223 + 1,
				 a >> 16 & 255, a >> 8 & 255, i & 255);
			rig_route(g, text, 7);
			if (bulk == 0)
				rig_go(g);
		}
		rig_route(g, "2001:db8::/32", 7); /* this trie has memory */
		rig_settle(g);
		assert_non_null(strstr(said(g), " 2001:db8::/32 "));
		rig_route(g, "198.51.100.0/24", 7);
		rig_settle(g);
		failed = count(said(g), true);
		assert_int_equal(failed, 1);
		assert_true(g->rib->count.commit_nomem + g->rib->count.route_nomem > 0);

		/*
		 * The tries are complete again: all routes are acknowledged once, when the
		 * replay has ended.
		 */
		rig_no_memory = false;
		rig_settle(g);
		rig_settle(g);
		rig_later(g, 10);
		good = count(said(g), false);
		assert_false(g->rib->resync.due || g->rib->pending.failed);
		assert_int_equal(good, MORE + 2);
		rig_settle(g);
		assert_string_equal(said(g), "");
		rig_free(g);
	}
}

static void
routes_that_are_not_ours_get_no_acknowledgement(void **state)
{
	struct rig *g = rig_with_feedback();
	struct fpm_event *ev;

	rig_route(g, "198.51.100.0/24", 1);
	rig_settle(g);
	said(g);
	rig_del(g, "198.51.100.0/24");
	rig_route(g, "fe80::/64", 1);
	rig_route(g, "203.0.113.0/24", 1);
	ev = &g->batch->ev[g->batch->n - 1];
	ev->table = 100;
	rig_settle(g);
	assert_string_equal(said(g), "");
	rig_free(g);
}

static void
a_replayed_route_ahead_of_its_id_is_acknowledged_when_it_is_bound(void **state)
{
	struct rig *g = rig_with_feedback();

	rig_route(g, "198.51.100.0/24", 1);
	rig_settle(g);
	said(g);
	rig_session_down(g);
	rig_session(g, 100);
	rig_route(g, "198.51.100.0/24", 7);
	rig_settle(g);
	assert_string_equal(said(g), "");
	rig_hop(g, 7, "192.0.2.1", 11);
	rig_settle(g);
	assert_string_equal(said(g), "198.51.100.0/24 ");
	rig_free(g);
}

static void
a_session_gets_acknowledgements_of_its_own_routes_only(void **state)
{
	struct rig *g = rig_with_feedback();

	rig_route(g, "198.51.100.0/24", 1);
	rig_session(g, 100); /* in the same batch */
	rig_route_type(g, "203.0.113.0/24", RTN_BLACKHOLE);
	rig_settle(g);
	assert_string_equal(said(g), "203.0.113.0/24 ");
	rig_free(g);
}

static void
a_full_batch_goes_in_several_messages_and_in_order(void **state)
{
	struct rig *g = rig_with_feedback();
	char *at;

	rig_routes(g, 2500, 1);
	rig_settle(g);
	at = strdup(said(g));
	assert_int_equal(strncmp(at, "10.0.0.0/24 10.0.1.0/24 ", 24), 0);
	assert_non_null(strstr(at, "10.9.194.0/24 10.9.195.0/24 "));
	free(at);
	rig_free(g);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_route_is_acknowledged_after_the_grace_period_and_once),
		cmocka_unit_test(a_new_next_hop_is_waited_for),
		cmocka_unit_test(
			a_route_sent_again_is_acknowledged_again_though_nothing_changes),
		cmocka_unit_test(an_unsupported_route_has_failed),
		cmocka_unit_test(a_route_that_is_refused_has_failed),
		cmocka_unit_test(a_route_without_an_adjacency_has_failed),
		cmocka_unit_test(a_route_without_a_group_has_failed),
		cmocka_unit_test(zebra_is_not_asked_for_routes_at_the_end),
		cmocka_unit_test(
			a_route_without_memory_in_the_trie_has_failed_until_it_is_in),
		cmocka_unit_test(routes_that_are_not_ours_get_no_acknowledgement),
		cmocka_unit_test(
			a_replayed_route_ahead_of_its_id_is_acknowledged_when_it_is_bound),
		cmocka_unit_test(a_session_gets_acknowledgements_of_its_own_routes_only),
		cmocka_unit_test(a_full_batch_goes_in_several_messages_and_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
