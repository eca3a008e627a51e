/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists of routes that Linux ends at a route of more than 32 KiB: the timers of the thread, and
 * the thread in a namespace whose table local has no IPv4 routes. tests/system has the cut
 * lists of a router that has addresses.
 * link: fpm-dataplane/rib/ fpm-dataplane/fib/ fpm-dataplane/base/ poptrie/
 * link: fpm-dataplane/rtnl/new_link.c fpm-dataplane/rtnl/dump.c fpm-dataplane/rtnl/pass.c
 * link: fpm-dataplane/rtnl/changes.c fpm-dataplane/rtnl/plan.c fpm-dataplane/rtnl/socket.c fpm-dataplane/rtnl/tables.c
 * link: fpm-dataplane/rtnl/rule_names.c
 * link: fpm-dataplane/netlink/ tap-bridge/netns.c tap-bridge/tap.c
 * link: tests/unit/rib_rig.c tests/fuzz/invariants.c
 * link: tests/unit/rig_kernel.c
 */
#include "test_tap_bridge.h"

#include <limits.h>
#include <net/if.h>

#include "../fuzz/invariants.h"
#include "rib_rig.h"
#include "rtnl/rtnl.c"

/* The message of a route with so many next hops has more than 32 KiB. */
#define MANY 2500u

/* --- timers --------------------------------------------------------------------------- */

/* Make a thread without sockets. Its dump of all tables was cut and has ended. */
static struct rtnl *
after_a_cut(struct worker *w)
{
	struct rtnl *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	w->loop = ev_loop_new(0);
	assert_non_null(w->loop);
	w->ctx = r;
	r->w = w;
	r->events = r->dumps = r->changes = -1;
	rtnl_init_watchers(r);
	r->whole = r->cut[1] = true;
	r->dump_begin_ms = monotonic_ms();
	dump_finished(r);
	return r;
}

static void
end(struct worker *w)
{
	ev_loop_destroy(w->loop);
	free(w->ctx);
}

/*
 * Return the milliseconds until the timer of the next dump; 0: its time is over, because
 * this program had no CPU for a while; UINT_MAX: it does not run.
 */
static unsigned int
next_dump_ms(struct rtnl *r)
{
	double left_s;

	if (!ev_is_active(&r->resync))
		return UINT_MAX;
	ev_now_update(r->w->loop);
	left_s = ev_timer_remaining(r->w->loop, &r->resync);
	return left_s < 0. ? 0 : (unsigned int)(left_s * 1000.);
}

static void
a_cut_list_is_read_again_later_and_delays_no_other_dump(void **state)
{
	struct worker w = {0};
	struct rtnl *r = after_a_cut(&w);
	double again_s;

	/* Only the timer of the cut list runs, for CUT_MS. */
	assert_int_equal(next_dump_ms(r), UINT_MAX);
	assert_true(ev_is_active(&r->cut_again));
	again_s = ev_timer_remaining(w.loop, &r->cut_again);
	assert_true(again_s > 1. && again_s <= CUT_MS / 1000.);

	/* A replay and an expired route wait only as long as without a cut list. */
	rtnl_on_msg(&w, msg_new(MSG_REPLAY, sizeof(struct msg)));
	assert_true(r->all_due);
	assert_true(next_dump_ms(r) < 1000);
	end(&w);

	r = after_a_cut(&w);
	rtnl_on_expiry(w.loop, &r->expiry, 0);
	assert_true(r->lives_due);
	assert_true(next_dump_ms(r) < 1000);
	end(&w);
}

static void
the_timer_of_a_cut_list_causes_a_dump_while_it_is_cut(void **state)
{
	struct worker w = {0};
	struct rtnl *r = after_a_cut(&w);

	rtnl_on_cut(w.loop, &r->cut_again, 0);
	assert_true(r->silent_due);
	assert_true(next_dump_ms(r) < 1000);
	end(&w);

	r = after_a_cut(&w);
	r->cut[1] = false;
	rtnl_on_cut(w.loop, &r->cut_again, 0);
	assert_false(r->silent_due);
	assert_int_equal(next_dump_ms(r), UINT_MAX);
	/* No timer starts after a dump that shows complete lists. */
	dump_finished(r);
	assert_false(ev_is_active(&r->cut_again));
	end(&w);
}

/* Beside a large table a dump takes long: it is repeated less often. */
static void
a_large_table_that_is_cut_is_read_again_after_a_minute(void **state)
{
	struct worker w = {0};
	struct rtnl *r = after_a_cut(&w);

	ev_timer_stop(w.loop, &r->cut_again);
	r->large = true;
	cut_arm(r);
	assert_true(ev_timer_remaining(w.loop, &r->cut_again) > CUT_MS / 1000. + 1.);
	end(&w);
}

/* --- answers that are given up -------------------------------------------------------- */

/* Add so many IPv6 routes that their answer has several parts. */
static void
routes_add(const struct bed *bed)
{
	char line[96];
	FILE *ip;

	snprintf(line, sizeof(line), "ip -6 -n %s -batch -", bed->netns);
	ip = popen(line, "w");
	assert_non_null(ip);
	for (unsigned int i = 0; i < 1500; i++)
		fprintf(ip, "route add 2001:db8:%x::/48 dev t0\n", i);
	assert_int_equal(pclose(ip), 0);
}

/* Linux refuses a request while an earlier answer was not read to its end. */
static void
the_request_after_an_answer_that_failed_is_answered(void **state)
{
	struct bed *bed = bed_of(state);
	struct rig *g = rig_new();
	struct worker w = {0};
	struct rtnl *r = after_a_cut(&w);
	int rc;

	bed_tap(bed);
	ip(bed, "link set lo up");
	ip(bed, "link set t0 up");
	routes_add(bed);
	r->cut[1] = false;
	r->conf = (struct rtnl_conf){.rib = &g->w, .from = ROUTES_FROM_BOTH};
	snprintf(r->netns, sizeof(r->netns), "%s", bed->netns);
	r->buffer = malloc(DUMP_BUFFER_BYTES);
	assert_non_null(r->buffer);
	assert_int_equal(sockets_open(r), 0);

	/* rib seems to be behind, so that the dump pauses after each part. */
	kernel_count(&kernel_status.in, KERNEL_QUEUE_PAUSE_BYTES + 1);
	dump_plan(r, DUMP_ALL);
	while (r->job[r->at].kind != DUMP_ROUTES || r->job[r->at].scope.family != 6 ||
	       r->n_messages < 100)
		assert_int_equal(dump_continue(r), 0);
	atomic_fetch_sub(&kernel_status.in, KERNEL_QUEUE_PAUSE_BYTES + 1);
	dump_failed(r, -ENOBUFS);

	dump_plan(r, DUMP_ALL);
	while ((rc = dump_continue(r)) == 0)
		poll(NULL, 0, 1);
	assert_int_equal(rc, 1);
	assert_true(r->n_shown > 1500);
	pass_flush(r);
	rig_settle(g);
	rtnl_end(r);
	end(&w);
	rig_free(g);
}

/* --- table local without routes ------------------------------------------------------- */

struct scene {
	struct bed *bed;
	struct rig *g;
	struct worker rtnl;
};

/* Handle the messages to [rib] until the condition is true. */
#define wait_for(s, condition)                                              \
	do {                                                                \
		int64_t end_ = now_ms() + PATIENCE_MS;                      \
		while (!(condition)) {                                      \
			if (now_ms() > end_)                                \
				fail_msg("did not happen: %s", #condition); \
			rig_settle((s)->g);                                 \
			poll(NULL, 0, 1);                                   \
		}                                                           \
	} while (0)

/* Return true if table main has routes of a prefix in [rib]. */
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

/*
 * Add 198.18.0.0/24 with MANY next hops, or delete it. A line for `ip` has room for fewer.
 */
static void
large_route(struct scene *s, uint16_t type)
{
	static _Alignas(struct nlmsghdr) uint8_t buf[65536];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct netns_guard guard;
	unsigned int ifindex;
	struct nlattr *hops;
	struct rtmsg *rtm;
	int fd, error = -1;

	assert_int_equal(netns_enter(s->bed->netns, &guard), 0);
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	ifindex = if_nametoindex("t0");
	netns_leave(&guard);
	assert_true(fd >= 0);

	nlh->nlmsg_type = type;
	nlh->nlmsg_flags =
		NLM_F_REQUEST | NLM_F_ACK | (type == RTM_NEWROUTE ? NLM_F_CREATE : 0);
	rtm = mnl_nlmsg_put_extra_header(nlh, sizeof(*rtm));
	*rtm = (struct rtmsg){.rtm_family = AF_INET,
			      .rtm_dst_len = 24,
			      .rtm_table = RT_TABLE_MAIN,
			      .rtm_protocol = RTPROT_STATIC,
			      .rtm_type = RTN_UNICAST};
	mnl_attr_put_u32(nlh, RTA_DST, inet_addr("198.18.0.0"));
	hops = mnl_attr_nest_start(nlh, RTA_MULTIPATH);
	for (unsigned int i = 0; i < MANY && type == RTM_NEWROUTE; i++) {
		struct rtnexthop *hop = mnl_nlmsg_get_payload_tail(nlh);

		*hop = (struct rtnexthop){.rtnh_len = sizeof(*hop) + 8,
					  .rtnh_flags = RTNH_F_ONLINK,
					  .rtnh_ifindex = (int)ifindex};
		nlh->nlmsg_len += sizeof(*hop);
		mnl_attr_put_u32(nlh, RTA_GATEWAY, htonl(0x0a090002 + i));
	}
	mnl_attr_nest_end(nlh, hops);
	if (type == RTM_DELROUTE)
		mnl_attr_nest_cancel(nlh, hops);
	assert_int_equal(send(fd, buf, nlh->nlmsg_len, 0), nlh->nlmsg_len);
	assert_true(recv(fd, buf, sizeof(buf), 0) >= (ssize_t)NLMSG_LENGTH(sizeof(error)));
	memcpy(&error, mnl_nlmsg_get_payload(nlh), sizeof(error));
	assert_int_equal(error, 0);
	close(fd);
}

static uint64_t
cut(void)
{
	return atomic_load_explicit(&kernel_status.cut, memory_order_relaxed);
}

/*
 * The absence of table local shows no cut where this table has no route. The event of the
 * large route does.
 */
static void
without_own_addresses_the_event_of_a_large_route_shows_the_cut(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));
	struct rtnl_conf conf;
	uint64_t before;

	assert_non_null(s);
	s->bed = bed_of(state);
	bed_tap(s->bed);
	ip(s->bed, "link set t0 up");
	/* Linux takes no gateway before table local exists. */
	ip(s->bed, "addr add 10.9.0.1/16 dev t0");
	ip(s->bed, "addr del 10.9.0.1/16 dev t0");
	s->g = rig_new();
	conf = (struct rtnl_conf){
		.rib = &s->g->w, .netns = s->bed->netns, .from = ROUTES_FROM_BOTH};
	atomic_store(&kernel_status.in_step, 0);
	assert_int_equal(rtnl_setup(&s->rtnl, &conf), 0);
	assert_int_equal(worker_prepare(&s->rtnl), 0);
	assert_int_equal(worker_start(&s->rtnl), 0);
	s->g->rib->conf.rtnl = &s->rtnl;
	wait_for(s, atomic_load(&kernel_status.in_step) == 1);

	ip(s->bed, "route add 198.51.100.0/24 via 10.9.0.1 dev t0 onlink proto static");
	wait_for(s, has(s, "198.51.100.0/24"));
	before = cut();
	large_route(s, RTM_NEWROUTE);
	wait_for(s, cut() > before);
	before = cut();
	worker_send(&s->rtnl, msg_new(MSG_REPLAY, sizeof(struct msg)));
	wait_for(s, cut() > before && kernel_queue_depth() == 0);
	assert_true(has(s, "198.51.100.0/24")); /* no dump removed it */
	assert_int_equal(atomic_load(&kernel_status.cut_now), 1);

	large_route(s, RTM_DELROUTE);
	wait_for(s, atomic_load(&kernel_status.cut_now) == 0);
	ip(s->bed, "route del 198.51.100.0/24");
	wait_for(s, !has(s, "198.51.100.0/24"));

	worker_stop(&s->rtnl);
	s->g->rib->conf.rtnl = &s->g->rtnl;
	rig_settle(s->g);
	rib_must_be_sound(s->g);
	worker_free(&s->rtnl);
	rtnl_teardown(&s->rtnl);
	rig_free(s->g);
	free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cut_list_is_read_again_later_and_delays_no_other_dump),
		cmocka_unit_test(the_timer_of_a_cut_list_causes_a_dump_while_it_is_cut),
		cmocka_unit_test(a_large_table_that_is_cut_is_read_again_after_a_minute),
		bed_test(the_request_after_an_answer_that_failed_is_answered),
		bed_test(without_own_addresses_the_event_of_a_large_route_shows_the_cut),
	};

	return cmocka_run_group_tests_name("rtnl-cut", tests, NULL, NULL);
}
