/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Dumps during which IPv6 routes or rules are deleted. Linux may skip existing ones then,
 * so the answer lacks them. The test makes the steps of the thread itself, and deletes
 * routes or rules between two parts of an answer.
 * link: fpm-dataplane/rib/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: fpm-dataplane/rtnl/ fpm-dataplane/netlink/ tap-bridge/netns.c tap-bridge/tap.c
 * link: tests/unit/rib_rig.c tests/fuzz/invariants.c
 * link: tests/unit/rig_kernel.c
 */
#include "test_tap_bridge.h"

#include <net/if.h>

#include "../fuzz/invariants.h"
#include "rib_rig.h"
#include "rtnl/impl.h"

#define N_ROUTES 1500u /* so many that an answer has several parts */
#define N_SHORT  40u   /* routes deleted during an answer, which then lacks 40 others */
#define STALE    "2001:db8:ffff::/48"

struct scene {
	struct bed *bed;
	struct rig *g;
	struct rtnl *r;
	uint32_t seq, n_answers; /* of the present dump of IPv6 routes */
	unsigned int n_parts;    /* of the present answer */
	/* called after each part of an answer, with the answer's number, from 1 */
	void (*on_part)(struct scene *s, unsigned int answer, unsigned int part);
};

/*
 * Run `ip -6 route COMMAND` for the routes 0 to n - 1, of which each begins with 2001:db8.
 */
static void
routes_change(const struct scene *s, const char *command, unsigned int n)
{
	char line[96];
	FILE *ip;

	snprintf(line, sizeof(line), "ip -6 -n %s -batch -", s->bed->netns);
	ip = popen(line, "w");
	assert_non_null(ip);
	for (unsigned int i = 0; i < n; i++)
		fprintf(ip, "route %s 2001:db8:%x::/48 dev t0 proto static\n", command, i);
	assert_int_equal(pclose(ip), 0);
}

/* Open the sockets in a namespace with N_ROUTES routes and STALE. */
static struct scene *
scene_of(void **state)
{
	struct bed *bed = bed_of(state);
	struct scene *s = calloc(1, sizeof(*s));
	struct rtnl *r = calloc(1, sizeof(*r));

	assert_non_null(s);
	assert_non_null(r);
	s->bed = bed;
	s->r = r;
	bed_tap(bed);
	bed_sysctl(bed, "ipv6/conf/t0/accept_dad", "0");
	ip(bed, "link set lo up");
	ip(bed, "link set t0 up");
	routes_change(s, "add", N_ROUTES);
	ip(bed, "-6 route add " STALE " dev t0 proto static");
	s->g = rig_new();
	r->conf = (struct rtnl_conf){
		.rib = &s->g->w, .netns = bed->netns, .from = ROUTES_FROM_BOTH};
	snprintf(r->netns, sizeof(r->netns), "%s", bed->netns);
	r->events = r->dumps = r->changes = -1;
	r->buffer = malloc(DUMP_BUFFER_BYTES);
	assert_non_null(r->buffer);
	assert_int_equal(sockets_open(r), 0);
	s->g->rib->conf.from = ROUTES_FROM_BOTH;
	return s;
}

static void
end(struct scene *s)
{
	struct rtnl *r = s->r;

	rig_settle(s->g);
	rib_must_be_sound(s->g);
	sockets_close(r);
	rule_names_free(r);
	tables_free(r);
	free(r->rule);
	free(r->buffer);
	free(r);
	rig_free(s->g);
	free(s);
}

/* Note that a part of an answer has arrived, and call on_part. */
static void
part_arrived(struct scene *s)
{
	struct rtnl *r = s->r;
	const struct dump_job *job = &r->job[r->at];

	if (job->kind != DUMP_ROUTES || job->scope.family != 6 || r->checking ||
	    r->n_messages == 0)
		return;
	if (s->seq != r->seq) {
		s->seq = r->seq;
		s->n_parts = 0;
		s->n_answers++;
	}
	if (s->on_part != NULL)
		s->on_part(s, s->n_answers, ++s->n_parts);
}

/* Dump all tables. The dump pauses after each part, because rib seems to be behind. */
static void
dump(struct scene *s, void (*on_part)(struct scene *, unsigned int, unsigned int))
{
	struct rtnl *r = s->r;
	int rc;

	s->on_part = on_part;
	s->n_answers = 0;
	r->all_due = false;
	kernel_count(&kernel_status.in, KERNEL_QUEUE_PAUSE_BYTES + 1);
	dump_plan(r, DUMP_ALL);
	while ((rc = dump_continue(r)) == 0)
		part_arrived(s);
	assert_int_equal(rc, 1);
	r->n_jobs = r->at = 0;
	pass_flush(r);
	rig_settle(s->g);
	atomic_fetch_sub(&kernel_status.in, KERNEL_QUEUE_PAUSE_BYTES + 1);
	assert_int_equal(kernel_queue_depth(), 0);
}

/* Return true if [rib] has a route of the kernel for the prefix. */
static bool
has(const struct scene *s, const char *text)
{
	struct rib_tables *t = &s->g->rib->tables;
	const struct routes *routes = tables_routes(t, RT_TABLE_MAIN);
	const struct route *found;
	struct prefix p;

	assert_int_equal(prefix_parse(text, &p, NULL), 0);
	found = routes_find(routes, RT_TABLE_MAIN, &p,
			    routes_hash(routes, RT_TABLE_MAIN, &p));
	return found != NULL && kroute_first(&s->g->rib->kroutes, found) != 0;
}

/* Return the number of the routes 0 to N_ROUTES - 1 that [rib] has. */
static unsigned int
n_routes(const struct scene *s)
{
	unsigned int n = 0;
	char text[32];

	for (unsigned int i = 0; i < N_ROUTES; i++) {
		snprintf(text, sizeof(text), "2001:db8:%x::/48", i);
		n += has(s, text);
	}
	return n;
}

/*
 * Make an answer lack `n` existing routes after one of its parts. Because a route is added,
 * Linux begins again, and passes over as many routes as it has shown. The deleted routes
 * exist again before the answer ends.
 */
static void
answer_shorten(struct scene *s, unsigned int n, unsigned int part, unsigned int at)
{
	if (part == at) {
		routes_change(s, "del", n);
		ip(s->bed, "-6 route add 2001:db8:fffe::/48 dev t0 proto static");
	} else if (part == at + 1) {
		ip(s->bed, "-6 route del 2001:db8:fffe::/48");
		routes_change(s, "add", n);
	}
}

static void
first_two_answers_lack_the_same_routes(struct scene *s, unsigned int answer,
				       unsigned int part)
{
	if (answer <= 2)
		answer_shorten(s, N_SHORT, part, 2);
}

static void
each_answer_lacks_the_same_routes(struct scene *s, unsigned int answer, unsigned int part)
{
	answer_shorten(s, N_SHORT, part, 2);
}

/*
 * Each answer lacks one of more than a hundred routes, and not the same as the last answer.
 */
static void
each_answer_lacks_another_route(struct scene *s, unsigned int answer, unsigned int part)
{
	answer_shorten(s, 1, part, 2 + answer % 2);
}

/* --- tests ---------------------------------------------------------------------------- */

/*
 * If no route is deleted during an answer, this answer suffices, however many parts it has.
 */
static void
a_quiet_dump_has_one_answer(void **state)
{
	struct scene *s = scene_of(state);

	dump(s, NULL);
	assert_int_equal(s->n_answers, 1);
	assert_int_equal(n_routes(s), N_ROUTES);
	assert_true(has(s, STALE));
	ip(s->bed, "-6 route del " STALE);
	dump(s, NULL);
	assert_int_equal(s->n_answers, 1);
	assert_false(has(s, STALE)); /* the event was not read */
	assert_int_equal(n_routes(s), N_ROUTES);
	end(s);
}

static void
routes_that_two_answers_lack_stay(void **state)
{
	struct scene *s = scene_of(state);

	dump(s, NULL);
	ip(s->bed, "-6 route del " STALE);
	dump(s, first_two_answers_lack_the_same_routes);
	assert_int_equal(s->n_answers, 3);
	assert_int_equal(n_routes(s), N_ROUTES);
	assert_false(has(s, STALE));
	assert_false(s->r->all_due);
	end(s);
}

static void
routes_that_all_answers_lack_stay_and_the_tables_are_read_again(void **state)
{
	struct scene *s = scene_of(state);

	dump(s, NULL);
	ip(s->bed, "-6 route del " STALE);
	dump(s, each_answer_lacks_the_same_routes);
	assert_int_equal(s->n_answers, 4);
	assert_int_equal(n_routes(s), N_ROUTES);
	assert_true(s->r->all_due);
	dump(s, NULL);
	assert_false(has(s, STALE));
	assert_false(s->r->all_due);
	end(s);
}

/* A full table whose routes change all the time has no quiet answer. */
static void
four_answers_suffice_if_few_routes_are_deleted(void **state)
{
	struct scene *s = scene_of(state);

	dump(s, NULL);
	ip(s->bed, "-6 route del " STALE);
	dump(s, each_answer_lacks_another_route);
	assert_int_equal(s->n_answers, 4);
	assert_int_equal(n_routes(s), N_ROUTES);
	assert_false(has(s, STALE));
	assert_false(s->r->all_due);
	end(s);
}

/* --- rules ---------------------------------------------------------------------------- */

#define N_RULES 1000u /* some parts of an answer */

/* Add or delete rules, all with different prefixes. */
static void
rules_change(const struct scene *s, const char *command, unsigned int begin,
	     unsigned int end)
{
	char line[96];
	FILE *ip;

	snprintf(line, sizeof(line), "ip -n %s -batch -", s->bed->netns);
	ip = popen(line, "w");
	assert_non_null(ip);
	for (unsigned int i = begin; i < end; i++)
		fprintf(ip, "rule %s pref %u from 10.%u.%u.0/24 table 100\n", command,
			i + 1, i >> 8, i & 255);
	assert_int_equal(pclose(ip), 0);
}

/*
 * Rules that an answer has shown are deleted before its next part. This part lacks as many
 * rules that exist, so the thread requests another answer.
 */
static void
a_list_of_rules_is_complete_although_some_are_deleted_meanwhile(void **state)
{
	struct scene *s = scene_of(state);
	struct rtnl *r = s->r;
	unsigned int n_answers = 0, seq = 0, parts = 0;
	int rc;

	rules_change(s, "add", 0, N_RULES);
	kernel_count(&kernel_status.in, KERNEL_QUEUE_PAUSE_BYTES + 1);
	dump_plan_rules(r);
	while ((rc = dump_continue(r)) == 0) {
		const struct dump_job *job = &r->job[r->at];

		if (job->kind != DUMP_RULES || job->scope.family != 4)
			continue;
		parts = seq == r->seq ? parts + 1 : 1;
		n_answers += seq != r->seq;
		seq = r->seq;
		if (n_answers == 1 && parts == 2)
			rules_change(s, "del", 0, 50);
	}
	assert_int_equal(rc, 1);
	pass_flush(r);
	rig_settle(s->g);
	atomic_fetch_sub(&kernel_status.in, KERNEL_QUEUE_PAUSE_BYTES + 1);
	assert_int_equal(n_answers, 2);
	/* With the rules of tables local, main and default. */
	assert_int_equal(s->g->rib->rules.list[0].n, N_RULES - 50 + 3);
	end(s);
}

/* Linux may be configured to delete routes of a link without an event for each. */
static void
a_link_that_is_set_down_disturbs_an_answer(void **state)
{
	struct scene *s = scene_of(state);

	ip(s->bed, "tuntap add d0 mode tap");
	assert_int_equal(changes_begin(s->r), 0);
	assert_int_equal(changes_end(s->r), 0);
	assert_int_equal(changes_begin(s->r), 0);
	ip(s->bed, "tuntap add d1 mode tap");
	ip(s->bed, "link set d1 up");
	routes_change(s, "replace", 10);
	assert_int_equal(changes_end(s->r), 0);
	assert_int_equal(changes_begin(s->r), 0);
	routes_change(s, "del", 10);
	assert_int_equal(changes_end(s->r), 10);
	assert_int_equal(changes_begin(s->r), 0);
	ip(s->bed, "link set d1 down");
	assert_int_equal(changes_end(s->r), CHANGES_UNKNOWN);
	assert_int_equal(changes_begin(s->r), 0);
	ip(s->bed, "link del d1");
	assert_int_equal(changes_end(s->r), CHANGES_UNKNOWN);
	end(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		bed_test(a_quiet_dump_has_one_answer),
		bed_test(routes_that_two_answers_lack_stay),
		bed_test(routes_that_all_answers_lack_stay_and_the_tables_are_read_again),
		bed_test(four_answers_suffice_if_few_routes_are_deleted),
		bed_test(a_link_that_is_set_down_disturbs_an_answer),
		bed_test(a_list_of_rules_is_complete_although_some_are_deleted_meanwhile),
	};

	return cmocka_run_group_tests_name("rtnl-changes", tests, NULL, NULL);
}
