/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connections to bfdd, against a model of bfdd as doc/bfd.md describes it. In one step,
 * bfdd can write 58 messages to a connection and loses all further ones. Over a new
 * connection it announces sessions without their interfaces. When a connection ends, its
 * sessions go to the oldest connections that have room; a session for which there is no
 * room has no connection. After each random event the daemon has the sessions of bfdd.
 *
 * link: fpm-dataplane/bfd/plan.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bfd/plan.h"

#define CONNS      48
#define SESSIONS   1200
#define STEPS_MOST 4000 /* of the plan, until it rests */

/* A session, on both sides. `value` stands for its intervals. */
struct session {
	bool exists;
	int conn; /* connection that announced it; -1: none, bfdd sends its packets */
	uint32_t value;
	bool known; /* the daemon knows the session */
	bool has_iface;
	int known_conn;
	uint32_t known_value;
};

struct model {
	struct session s[SESSIONS];
	unsigned int room[CONNS]; /* messages that the step may still write */
	bool accepted[CONNS];     /* bfdd has seen that it was opened */
	struct plan_conn conn[CONNS];
	struct plan plan;
	bool listens;
	bool keeps_iface; /* FRR 8.4.4: a new connection gets the interfaces, too */
	unsigned int n_closed;
	bool forgot; /* the daemon lost records of sessions in this round */
};

static void
step_is_new(struct model *m)
{
	for (unsigned int i = 0; i < CONNS; i++)
		m->room[i] = PLAN_ROOM;
}

/* Let bfdd announce a session over its connection, if there is room. */
static bool
tell(struct model *m, struct session *s, bool with_iface)
{
	if (s->conn < 0 || m->room[s->conn] == 0)
		return false;
	m->room[s->conn]--;
	plan_heard(&m->plan, (unsigned int)s->conn);
	s->known = s->exists;
	s->known_conn = s->exists ? s->conn : -1;
	s->known_value = s->value;
	s->has_iface = with_iface;
	return true;
}

/* Let bfdd handle its events: it accepts the connections that were opened. */
static void
accept_all(struct model *m)
{
	for (unsigned int c = 0; c < CONNS; c++) {
		if (!m->conn[c].open || m->accepted[c])
			continue;
		m->accepted[c] = true;
		m->conn[c].connecting = false;
		step_is_new(m);
		for (unsigned int i = 0; i < SESSIONS; i++) {
			struct session *s = &m->s[i];

			if (!s->exists || s->conn >= 0)
				continue;
			s->conn = (int)c;
			if (!tell(m, s, m->keeps_iface))
				s->conn = -1;
		}
	}
}

/* Find the oldest connection that has room; -1: none. */
static int
oldest(const struct model *m)
{
	int best = -1;

	for (int c = 0; c < CONNS; c++)
		if (m->conn[c].open && m->accepted[c] && m->room[c] > 0 &&
		    (best < 0 || m->conn[c].born < m->conn[best].born))
			best = c;
	return best;
}

/*
 * End a connection. In one step, bfdd moves its sessions to other connections. Return the
 * number of sessions that got no connection.
 */
static unsigned int
conn_end(struct model *m, unsigned int c)
{
	unsigned int n_lost = 0;

	m->conn[c].n = 0;
	for (unsigned int i = 0; i < SESSIONS; i++)
		if (m->s[i].known && m->s[i].known_conn == (int)c) {
			m->s[i].known_conn = -1;
			m->conn[c].n++;
		}
	plan_ended(&m->plan, c);
	m->accepted[c] = false;
	step_is_new(m);
	for (unsigned int i = 0; i < SESSIONS; i++) {
		struct session *s = &m->s[i];

		if (!s->exists || s->conn != (int)c)
			continue;
		s->conn = oldest(m);
		n_lost += !tell(m, s, true);
	}
	return n_lost;
}

/* Follow the plan as long as it says that there is more to do. */
static void
rest(struct model *m)
{
	for (unsigned int step = 0; m->plan.due; step++) {
		unsigned int at = 0;
		enum plan_step todo;

		assert_true(step < STEPS_MOST);
		m->plan.due = false;
		for (unsigned int c = 0; c < CONNS; c++)
			m->conn[c].n = 0;
		for (unsigned int i = 0; i < SESSIONS; i++) {
			if (m->s[i].known && m->s[i].known_conn >= 0)
				m->conn[m->s[i].known_conn].n++;
		}
		todo = plan_next(&m->plan, &at);
		switch (todo) {
		case PLAN_REST:
			break;
		case PLAN_ASK:
			assert_true(m->conn[at].open && m->accepted[at]);
			plan_answered(&m->plan, at, m->conn[at].age);
			assert_true(m->plan.due);
			break;
		case PLAN_WAIT:
			accept_all(m);
			m->plan.due = true;
			break;
		case PLAN_OPEN:
			assert_false(m->conn[at].open);
			if (!m->listens)
				return;
			plan_opened(&m->plan, at, true, false);
			m->accepted[at] = false;
			break;
		case PLAN_CLOSE:
			assert_true(m->conn[at].open);
			m->n_closed++;
			/* There was room for the sessions that the plan knew of. */
			assert_true(conn_end(m, at) == 0 || m->forgot);
			break;
		case PLAN_FULL:
			fail_msg("more than %u connections", CONNS);
		}
	}
}

/*
 * Check that the daemon has each session of bfdd with its values, and has a deleted session
 * only if bfdd sent no delete.
 */
static void
check(struct model *m)
{
	unsigned int n_empty = 0;

	for (unsigned int i = 0; i < SESSIONS; i++) {
		struct session *s = &m->s[i];

		if (!s->exists) {
			/* A session without a connection ends by itself after a time. */
			assert_true(!s->known || s->known_conn < 0);
			s->known = false;
			continue;
		}
		assert_true(s->conn >= 0 && s->known);
		assert_int_equal(s->known_conn, s->conn);
		assert_int_equal(s->known_value, s->value);
		assert_true(s->has_iface || m->keeps_iface);
	}
	for (unsigned int c = 0; c < CONNS; c++) {
		n_empty += m->conn[c].open && m->conn[c].n == 0;
		assert_false(m->conn[c].stale);
	}
	assert_true(n_empty <= 1);
	m->forgot = false;
}

static unsigned int
below(unsigned int n)
{
	return (unsigned int)random() % n;
}

/* Let bfdd add, change or delete up to `n` sessions in one step. */
static void
change(struct model *m, unsigned int n)
{
	unsigned int what = below(3), from = below(SESSIONS);

	step_is_new(m);
	for (unsigned int i = 0; n > 0 && i < SESSIONS; i++) {
		struct session *s = &m->s[(from + i) % SESSIONS];

		if (s->exists == (what == 0))
			continue;
		n--;
		s->value++;
		s->exists = what != 2;
		if (what == 0)
			s->conn = oldest(m);
		tell(m, s, true); /* may be lost */
	}
}

/*
 * Start the next daemon. It inherits the connections, but cannot use `n` records of the
 * last daemon.
 */
static void
forget(struct model *m, unsigned int n)
{
	for (unsigned int c = 0; c < CONNS; c++)
		if (m->conn[c].open && !m->conn[c].connecting)
			plan_opened(&m->plan, c, false, true);
	for (unsigned int i = 0; i < SESSIONS && n > 0; i++)
		if (m->s[i].known) {
			m->s[i].known = false;
			n--;
		}
	plan_doubt(&m->plan);
	m->forgot = true;
}

static int
up(void **state)
{
	struct model *m = calloc(1, sizeof(*m));
	unsigned int seed = (unsigned int)getpid();

	print_message("seed %u\n", seed);
	srandom(seed);
	m->plan = (struct plan){.conn = m->conn, .n_conn = CONNS, .due = true};
	m->listens = true;
	*state = m;
	return 0;
}

static int
down(void **state)
{
	free(*state);
	return 0;
}

static void
sessions_of_the_start_get_their_interfaces(void **state)
{
	struct model *m = *state;

	for (unsigned int i = 0; i < 1000; i++)
		m->s[i] = (struct session){.exists = true, .conn = -1, .known_conn = -1};
	rest(m);
	check(m);
}

static void
one_connection_is_enough_without_sessions(void **state)
{
	struct model *m = *state;
	unsigned int n = 0;

	rest(m);
	for (unsigned int c = 0; c < CONNS; c++)
		n += m->conn[c].open;
	assert_int_equal(n, 1);
	/* Few new sessions at a time need no other connection. */
	for (unsigned int i = 0; i < 100; i++) {
		change(m, 10);
		rest(m);
		check(m);
	}
	assert_int_equal(m->n_closed, 0);
}

static void
a_bfdd_that_does_not_listen_is_tried_again(void **state)
{
	struct model *m = *state;
	unsigned int at;

	m->listens = false;
	rest(m);
	assert_int_equal(plan_next(&m->plan, &at), PLAN_OPEN);
	/* The connection is refused. */
	plan_opened(&m->plan, at, true, false);
	assert_int_equal(plan_next(&m->plan, &at), PLAN_WAIT);
	plan_ended(&m->plan, at);
	assert_int_equal(plan_next(&m->plan, &at), PLAN_OPEN);
}

/* --- one step of bfdd, without the model ---------------------------------------------- */

/* Ask for the next step. If it names a connection, assert that it is `want`. */
static enum plan_step
next(struct model *m, unsigned int want)
{
	unsigned int at = CONNS;
	enum plan_step todo = plan_next(&m->plan, &at);

	if (todo != PLAN_REST && todo != PLAN_WAIT)
		assert_int_equal(at, want);
	return todo;
}

/*
 * Let bfdd answer the request with this age on connection `c`. `is_news`: the answer must
 * change the plan.
 */
static void
answer(struct model *m, unsigned int c, uint32_t age, bool is_news)
{
	m->plan.due = false;
	plan_answered(&m->plan, c, age);
	assert_int_equal(m->plan.due, is_news);
}

/* Let bfdd answer twice. Its step is over after that. */
static void
answer_twice(struct model *m, unsigned int c)
{
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(next(m, c), PLAN_ASK);
		assert_int_equal(next(m, c), PLAN_WAIT);
		answer(m, c, m->conn[c].age, true);
	}
}

static void
a_step_of_bfdd_is_over_after_two_answers(void **state)
{
	struct model *m = *state;
	uint32_t age;

	plan_opened(&m->plan, 0, false, false);
	answer_twice(m, 0);
	assert_int_equal(next(m, 0), PLAN_REST);
	/* One message has arrived; there may be more. */
	m->plan.due = false;
	plan_heard(&m->plan, 0);
	assert_true(m->plan.due);
	m->conn[0].n = 1;
	assert_int_equal(next(m, 0), PLAN_ASK);
	answer(m, 0, m->conn[0].age, true);
	/* One more message: both answers have to come after it. */
	assert_int_equal(next(m, 0), PLAN_ASK);
	age = m->conn[0].age;
	plan_heard(&m->plan, 0);
	answer(m, 0, age, false);
	answer_twice(m, 0);
	assert_int_equal(next(m, 0), PLAN_REST);
}

static void
an_answer_that_does_not_come_is_asked_for_again_after_ten_seconds(void **state)
{
	struct model *m = *state;
	uint32_t age;

	plan_opened(&m->plan, 0, false, false);
	assert_int_equal(next(m, 0), PLAN_ASK);
	age = m->conn[0].age;
	for (unsigned int i = 0; i < 9; i++) {
		m->plan.due = false;
		plan_tick(&m->plan);
		assert_true(m->plan.due);
		assert_int_equal(next(m, 0), PLAN_WAIT);
	}
	plan_tick(&m->plan);
	assert_int_equal(next(m, 0), PLAN_ASK);
	/* The late answer to the first request does not count for the second. */
	answer(m, 0, age, false);
	assert_int_equal(next(m, 0), PLAN_WAIT);
	answer(m, 0, m->conn[0].age, true);
	assert_int_equal(next(m, 0), PLAN_ASK);
	answer(m, 0, m->conn[0].age, true);
	/* A plan without open steps stays so while time passes. */
	for (unsigned int i = 0; i < 30; i++) {
		plan_tick(&m->plan);
		assert_int_equal(next(m, 0), PLAN_REST);
	}
}

static void
the_end_of_a_connection_begins_a_step_for_all(void **state)
{
	struct model *m = *state;
	uint32_t age;

	/* Two connections of the last daemon: one with sessions, one without. */
	plan_opened(&m->plan, 0, false, true);
	m->conn[0].n = 5;
	answer_twice(m, 0);
	plan_opened(&m->plan, 1, false, true);
	answer_twice(m, 1);
	assert_int_equal(next(m, 0), PLAN_REST);
	age = m->conn[1].age;
	m->plan.due = false;
	plan_ended(&m->plan, 0);
	assert_true(m->plan.due);
	assert_int_not_equal(m->conn[1].age, age);
	assert_int_equal(m->conn[0].n, 0);
	/*
	 * All sessions that bfdd hands over in one step have their interface, even if there
	 * are more than 29.
	 */
	for (unsigned int i = 0; i < PLAN_ROOM; i++)
		plan_heard(&m->plan, 1);
	m->conn[1].n = PLAN_ROOM;
	assert_false(m->conn[1].stale);
	answer_twice(m, 1);
	/* There may have been too little room for some sessions. */
	assert_int_equal(next(m, 0), PLAN_OPEN);
}

static void
as_many_messages_in_a_step_as_half_a_burst_are_safe(void **state)
{
	struct model *m = *state;

	plan_opened(&m->plan, 0, false, true);
	m->conn[0].n = PLAN_ROOM;
	for (unsigned int turn = 0; turn < 2; turn++) {
		answer_twice(m, 0);
		assert_int_equal(next(m, 0), PLAN_REST);
		for (unsigned int i = 0; i < PLAN_ROOM / 2; i++)
			plan_heard(&m->plan, 0);
		assert_false(m->conn[0].stale);
	}
	plan_heard(&m->plan, 0);
	assert_true(m->conn[0].stale);
	answer_twice(m, 0);
	assert_int_equal(next(m, 1), PLAN_OPEN);
}

static void
lost_messages_are_found_again(void **state)
{
	struct model *m = *state;

	rest(m);
	for (unsigned int round = 0; round < 3000; round++) {
		m->keeps_iface = below(2);
		for (unsigned int i = below(3); i > 0; i--)
			change(m, below(4) ? below(20) : below(200));
		if (below(10) == 0) { /* one connection ends by itself */
			unsigned int c = below(CONNS);

			if (m->conn[c].open && m->accepted[c])
				conn_end(m, c);
		}
		if (below(20) == 0)
			forget(m, below(2) ? 1 : SESSIONS);
		if (below(50) == 0) { /* bfdd starts again */
			for (unsigned int i = 0; i < SESSIONS; i++)
				m->s[i].conn = -1;
			for (unsigned int c = 0; c < CONNS; c++)
				if (m->conn[c].open)
					conn_end(m, c);
		}
		rest(m);
		check(m);
	}
	assert_true(m->n_closed > 100);
}

/* Reports are repeated only to a bfdd that answers. A stopped bfdd gets them once. */
static void
a_bfdd_that_does_not_answer_is_told_nothing_again(void **state)
{
	struct model *m = *state;
	unsigned int at = CONNS;

	assert_false(plan_repeats(&m->plan, 0));
	rest(m);
	assert_true(plan_repeats(&m->plan, 0));
	for (int tick = 0; tick < 100; tick++) {
		plan_tick(&m->plan);
		assert_false(plan_repeats(&m->plan, 0));
		if (plan_next(&m->plan, &at) == PLAN_ASK)
			assert_int_equal(at, 0);
	}
	assert_int_equal(at, 0);
	for (unsigned int answer = 0; answer < 2; answer++) {
		plan_answered(&m->plan, 0, m->conn[0].age);
		(void)plan_next(&m->plan, &at);
	}
	plan_answered(&m->plan, 0, m->conn[0].age);
	assert_true(plan_repeats(&m->plan, 0));
}

static void
bfdd_is_connected_by_an_established_connection(void **state)
{
	struct model *m = *state;

	assert_false(plan_is_connected(&m->plan));
	plan_opened(&m->plan, 3, true, false);
	assert_false(plan_is_connected(&m->plan));
	m->conn[3].connecting = false;
	assert_true(plan_is_connected(&m->plan));
	plan_ended(&m->plan, 3);
	assert_false(plan_is_connected(&m->plan));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(sessions_of_the_start_get_their_interfaces,
						up, down),
		cmocka_unit_test_setup_teardown(one_connection_is_enough_without_sessions,
						up, down),
		cmocka_unit_test_setup_teardown(a_bfdd_that_does_not_listen_is_tried_again,
						up, down),
		cmocka_unit_test_setup_teardown(a_step_of_bfdd_is_over_after_two_answers,
						up, down),
		cmocka_unit_test_setup_teardown(
			an_answer_that_does_not_come_is_asked_for_again_after_ten_seconds,
			up, down),
		cmocka_unit_test_setup_teardown(
			the_end_of_a_connection_begins_a_step_for_all, up, down),
		cmocka_unit_test_setup_teardown(
			as_many_messages_in_a_step_as_half_a_burst_are_safe, up, down),
		cmocka_unit_test_setup_teardown(lost_messages_are_found_again, up, down),
		cmocka_unit_test_setup_teardown(
			a_bfdd_that_does_not_answer_is_told_nothing_again, up, down),
		cmocka_unit_test_setup_teardown(
			bfdd_is_connected_by_an_established_connection, up, down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
